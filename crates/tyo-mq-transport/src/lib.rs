//! Engine.IO over HTTP polling and WebSocket, as a tower service.
#![forbid(unsafe_code)]
