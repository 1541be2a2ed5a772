//! Weir's data plane: listeners, HTTP/1.1 engine, connection pools, workers, draining
