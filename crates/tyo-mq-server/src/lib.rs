//! The composition root: settings, the Socket.IO gateway, namespaces, shutdown.
#![forbid(unsafe_code)]
