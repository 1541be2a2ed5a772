//! Weir's snapshot: the model compiled for speed
