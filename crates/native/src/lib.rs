//! Weir's native door: weir.yaml, its schema, translation and voice
