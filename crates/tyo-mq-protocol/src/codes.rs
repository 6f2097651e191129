//! Numeric codes of refusals, and no words: those belong to whoever refuses.

/// The `code` of an ERROR event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum ErrorCode {
    /// A producer's or consumer's name is missing or no string.
    BadName = -1,
    /// Another live socket of the realm holds the consumer name.
    DuplicateConsumer = -3,
    /// The realm admits no anonymous names.
    AnonymousNotAllowed = -4,
    /// The realm takes encrypted messages only.
    EncryptionRequired = -6,
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }
}

/// The `code` of AUTH_FAIL, ACK_FAIL, RATE_LIMITED and of refused confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Status {
    /// The payload cannot be read.
    Malformed = 400,
    /// The socket is not authenticated.
    Unauthenticated = 401,
    /// The socket may not do this.
    Forbidden = 403,
    /// There is no such thing.
    NotFound = 404,
    /// The message is over the size limit.
    TooLarge = 413,
    /// The sender is over its rate or its number of things under way.
    RateLimited = 429,
    /// Something failed on our side.
    Internal = 500,
    /// The store cannot be reached.
    StoreDown = 503,
    /// A queue is full.
    QueueFull = 507,
}

impl Status {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }
}
