//! The server's side of one Engine.IO connection: namespaces joined, and what each packet means for them.

use std::borrow::Cow;

use bytes::Bytes;

use super::shape::check_opens_with;
use super::{
    Assembled, Assembler, EventShape, MAX_NAMESPACES, Packet, PacketError, PacketKind, ROOT,
    Revision, check_json, decode, event_shape, write_connect, write_connect_error,
    write_disconnect,
};

/// The machine. Packets go in by [`receive_text`](Self::receive_text) and [`receive_binary`](Self::receive_binary);
/// an error means that the connection must be closed.
#[derive(Debug)]
pub struct Connection {
    revision: Revision,
    json: JsonCheck,
    joined: Vec<Joined>,
    assembler: Assembler,
}

/// What a packet means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The client wants to join; answer with [`Connection::accept`] or [`Connection::refuse`].
    Connect {
        /// The namespace, without a query.
        namespace: &'a str,
        /// Revision 5: the JSON object that the client sent along.
        auth: Option<&'a str>,
        /// Revision 4: the query behind the namespace, without its question mark.
        query: Option<&'a str>,
    },
    /// An event on a namespace that was joined.
    Event {
        /// The namespace.
        namespace: Cow<'a, str>,
        /// The id to answer under, when the client waits for an answer.
        ack: Option<u64>,
        /// The JSON array: name and arguments.
        args: Cow<'a, str>,
        /// What its placeholders stand for.
        attachments: Vec<Bytes>,
    },
    /// An answer to an event of ours.
    Ack {
        /// The namespace.
        namespace: Cow<'a, str>,
        /// The id that our event had.
        id: u64,
        /// The JSON array of arguments.
        args: Cow<'a, str>,
        /// What its placeholders stand for.
        attachments: Vec<Bytes>,
    },
    /// The client left the namespace; it is no longer joined.
    Disconnect {
        /// The namespace.
        namespace: &'a str,
        /// The socket id it had there.
        socket_id: Box<str>,
    },
    /// A binary packet that waits for attachments.
    NeedMore,
    /// Legal, and without effect.
    Ignored,
}

/// How much of an event's JSON [`Connection`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonCheck {
    /// All of it: what comes out is JSON.
    #[default]
    Full,
    /// Only as far as the event's name, because the caller parses all of `args` anyway and closes when it cannot.
    /// Packets with attachments are read in full all the same.
    Name,
}

/// Bounds of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Text and attachments of one binary packet together, in bytes.
    pub max_packet_bytes: usize,
}

#[derive(Debug)]
struct Joined {
    namespace: Box<str>,
    socket_id: Box<str>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_packet_bytes: 50 << 20,
        }
    }
}

impl Connection {
    /// A connection that has joined nothing yet.
    #[must_use]
    pub fn new(revision: Revision, json: JsonCheck, limits: Limits) -> Self {
        let assembler = Assembler::new(limits.max_packet_bytes);
        Self {
            revision,
            json,
            joined: Vec::new(),
            assembler,
        }
    }

    /// The protocol revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The namespace that the server joins the client to before it asks: `/` in revision 4.
    /// Pass it to [`accept`](Self::accept) as soon as the Engine.IO connection is open.
    #[must_use]
    pub fn implicit_namespace(&self) -> Option<&'static str> {
        (self.revision == Revision::V4).then_some(ROOT)
    }

    /// The socket id in a namespace, if it was joined.
    #[must_use]
    pub fn socket_id(&self, namespace: &str) -> Option<&str> {
        self.position(namespace)
            .map(|index| &*self.joined[index].socket_id)
    }

    /// Namespaces and socket ids, in the order of joining.
    pub fn joined(&self) -> impl Iterator<Item = (&str, &str)> {
        self.joined
            .iter()
            .map(|joined| (&*joined.namespace, &*joined.socket_id))
    }

    /// Takes one text message (without Engine.IO's `4`).
    ///
    /// # Errors
    /// When the packet is malformed or out of place: close the connection.
    pub fn receive_text<'a>(&mut self, text: &'a str) -> Result<Incoming<'a>, PacketError> {
        if self.assembler.is_waiting() {
            return Err(PacketError::AttachmentDue);
        }
        let mut packet = decode(text)?;
        let query = self.split_query(&mut packet.namespace);
        match packet.kind {
            PacketKind::Connect => self.on_connect(&packet, query),
            PacketKind::Disconnect => self.on_disconnect(&packet),
            PacketKind::Event => self.on_event(&packet),
            PacketKind::Ack => self.on_ack(&packet),
            PacketKind::ConnectError => Err(PacketError::NotAllowed),
            PacketKind::BinaryEvent | PacketKind::BinaryAck => self.on_binary(&packet),
        }
    }

    /// Takes one binary message.
    ///
    /// # Errors
    /// When none is due or the packet grows over its limit: close the connection.
    pub fn receive_binary(&mut self, bytes: &[u8]) -> Result<Incoming<'static>, PacketError> {
        match self.assembler.attach(bytes)? {
            Some(assembled) => self.on_assembled(assembled),
            None => Ok(Incoming::NeedMore),
        }
    }

    /// Joins the namespace under a socket id and writes the answer.
    ///
    /// # Errors
    /// When it was joined already, or too many are.
    pub fn accept(
        &mut self,
        namespace: &str,
        socket_id: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), PacketError> {
        if self.position(namespace).is_some() {
            return Err(PacketError::AlreadyJoined);
        }
        if self.joined.len() >= MAX_NAMESPACES {
            return Err(PacketError::TooManyNamespaces);
        }
        // Nearly all clients join one.
        self.joined.reserve_exact(1);
        self.joined.push(Joined {
            namespace: namespace.into(),
            socket_id: socket_id.into(),
        });
        write_connect(out, self.revision, namespace, socket_id);
        Ok(())
    }

    /// Writes that the namespace is refused. The connection stays.
    pub fn refuse(&self, namespace: &str, message: &str, out: &mut Vec<u8>) {
        write_connect_error(out, namespace, message);
    }

    /// Refuses a namespace that does not exist, in the words that clients know.
    pub fn refuse_unknown(&self, namespace: &str, out: &mut Vec<u8>) {
        self.refuse(namespace, "Invalid namespace", out);
    }

    /// Ends the client's membership and writes so; false when it had none. The connection stays.
    pub fn leave(&mut self, namespace: &str, out: &mut Vec<u8>) -> bool {
        let Some(index) = self.position(namespace) else {
            return false;
        };
        self.joined.remove(index);
        write_disconnect(out, namespace);
        true
    }

    fn on_connect<'a>(
        &mut self,
        packet: &Packet<'a>,
        query: Option<&'a str>,
    ) -> Result<Incoming<'a>, PacketError> {
        if !packet.data.is_empty() {
            check_opens_with(packet.data, b'{')?;
        }
        if self.position(packet.namespace).is_some() {
            // Revision 4 clients are in `/` before they could ask: asking again changes nothing.
            let asked_late = self.implicit_namespace() == Some(packet.namespace);
            return if asked_late {
                Ok(Incoming::Ignored)
            } else {
                Err(PacketError::AlreadyJoined)
            };
        }
        if self.joined.len() >= MAX_NAMESPACES {
            return Err(PacketError::TooManyNamespaces);
        }
        let auth = (!packet.data.is_empty()).then_some(packet.data);
        Ok(Incoming::Connect {
            namespace: packet.namespace,
            auth,
            query,
        })
    }

    fn on_disconnect<'a>(&mut self, packet: &Packet<'a>) -> Result<Incoming<'a>, PacketError> {
        if !packet.data.is_empty() {
            return Err(PacketError::Shape);
        }
        // Both sides may leave at the same moment, so leaving twice is no offence.
        let Some(index) = self.position(packet.namespace) else {
            return Ok(Incoming::Ignored);
        };
        let socket_id = self.joined.remove(index).socket_id;
        Ok(Incoming::Disconnect {
            namespace: packet.namespace,
            socket_id,
        })
    }

    fn on_event<'a>(&mut self, packet: &Packet<'a>) -> Result<Incoming<'a>, PacketError> {
        self.check_joined(packet.namespace)?;
        let shape = event_shape(packet.data)?;
        if self.json == JsonCheck::Full && !packet.data.is_empty() {
            check_json(packet.data)?;
        }
        if shape == EventShape::Nameless {
            return Ok(Incoming::Ignored);
        }
        Ok(Incoming::Event {
            namespace: Cow::Borrowed(packet.namespace),
            ack: packet.id,
            args: Cow::Borrowed(packet.data),
            attachments: Vec::new(),
        })
    }

    fn on_ack<'a>(&mut self, packet: &Packet<'a>) -> Result<Incoming<'a>, PacketError> {
        self.check_joined(packet.namespace)?;
        if packet.data.is_empty() {
            return Ok(Incoming::Ignored);
        }
        check_opens_with(packet.data, b'[')?;
        let Some(id) = packet.id else {
            return Ok(Incoming::Ignored);
        };
        Ok(Incoming::Ack {
            namespace: Cow::Borrowed(packet.namespace),
            id,
            args: Cow::Borrowed(packet.data),
            attachments: Vec::new(),
        })
    }

    fn on_binary(&mut self, packet: &Packet<'_>) -> Result<Incoming<'static>, PacketError> {
        self.check_joined(packet.namespace)?;
        let well_formed = match packet.kind {
            PacketKind::BinaryEvent => event_shape(packet.data)? == EventShape::Named,
            _ => packet.data.trim_start().starts_with('['),
        };
        if !well_formed {
            return Err(PacketError::Shape);
        }
        match self.assembler.begin(packet)? {
            Some(assembled) => self.on_assembled(assembled),
            None => Ok(Incoming::NeedMore),
        }
    }

    /// The namespace may have been left from our side while attachments were on their way.
    fn on_assembled(&self, packet: Assembled) -> Result<Incoming<'static>, PacketError> {
        self.check_joined(&packet.namespace)?;
        let Assembled {
            kind,
            namespace,
            id,
            args,
            attachments,
        } = packet;
        let (namespace, args) = (Cow::Owned(namespace), Cow::Owned(args));
        Ok(match (kind, id) {
            (PacketKind::BinaryEvent, ack) => Incoming::Event {
                namespace,
                ack,
                args,
                attachments,
            },
            (_, Some(id)) => Incoming::Ack {
                namespace,
                id,
                args,
                attachments,
            },
            (_, None) => Incoming::Ignored,
        })
    }

    fn split_query<'a>(&self, namespace: &mut &'a str) -> Option<&'a str> {
        if self.revision == Revision::V5 {
            return None;
        }
        let (path, query) = namespace.split_once('?')?;
        *namespace = path;
        Some(query)
    }

    fn check_joined(&self, namespace: &str) -> Result<(), PacketError> {
        self.position(namespace)
            .map(drop)
            .ok_or(PacketError::NotJoined)
    }

    fn position(&self, namespace: &str) -> Option<usize> {
        self.joined
            .iter()
            .position(|joined| &*joined.namespace == namespace)
    }
}
