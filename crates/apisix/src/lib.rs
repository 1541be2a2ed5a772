//! Weir's APISIX door: apisix.yaml documents, their defaults, translation and voice
