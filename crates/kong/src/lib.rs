//! Weir's Kong door: kong.yml documents, their defaults, translation and voice
