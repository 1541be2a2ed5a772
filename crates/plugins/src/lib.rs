//! Weir's plugin catalogue
