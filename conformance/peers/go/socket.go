// One connection: dialled, kept alive, redialled when it is lost.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const redialDelay = 50 * time.Millisecond

type socket struct {
	conn, url string

	mu      sync.Mutex // guards what follows, and writing
	ws      *websocket.Conn
	closed  bool
	pending *packet
}

// run serves one connection after the other until the socket is closed.
func (s *socket) run() {
	for !s.isClosed() {
		if err := s.serve(); err != nil && !s.isClosed() {
			report{Conn: s.conn, Event: "$disconnect", Args: []json.RawMessage{quoted(err.Error())}}.write()
		}
		time.Sleep(redialDelay)
	}
}

func (s *socket) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *socket) serve() error {
	url := "ws" + strings.TrimPrefix(s.url, "http") + "/socket.io/?EIO=4&transport=websocket"
	ws, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		return err
	}
	defer ws.Close()
	s.mu.Lock()
	s.ws, s.pending = ws, nil
	s.mu.Unlock()
	for {
		kind, data, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if kind == websocket.BinaryMessage {
			err = s.attachment(data)
		} else {
			err = s.text(string(data))
		}
		if err != nil {
			return err
		}
	}
}

func (s *socket) text(text string) error {
	switch {
	case strings.HasPrefix(text, "0"):
		return s.write("40")
	case text == "2":
		return s.write("3")
	case strings.HasPrefix(text, "4"):
		p, err := decode(text[1:])
		if err != nil {
			return err
		}
		if p.attachments > 0 {
			s.pending = p
			return nil
		}
		return s.deliver(p)
	case text == "6" || text == "1":
		return nil
	}
	return fmt.Errorf("unexpected packet %.40q", text)
}

func (s *socket) attachment(data []byte) error {
	p := s.pending
	if p == nil {
		return errors.New("binary frame out of place")
	}
	p.binary = append(p.binary, data)
	if len(p.binary) < p.attachments {
		return nil
	}
	s.pending = nil
	if err := p.fill(); err != nil {
		return err
	}
	return s.deliver(p)
}

func (s *socket) deliver(p *packet) error {
	switch p.kind {
	case kindConnect:
		var reply struct {
			SID string `json:"sid"`
		}
		if err := json.Unmarshal([]byte(p.body), &reply); err != nil {
			return err
		}
		report{Conn: s.conn, Event: "$connect", Args: []json.RawMessage{quoted(reply.SID), quoted("websocket")}}.write()
	case kindDisconnect:
		report{Conn: s.conn, Event: "$disconnect", Args: []json.RawMessage{quoted("io server disconnect")}}.write()
	case kindEvent:
		var args []json.RawMessage
		if err := json.Unmarshal([]byte(p.body), &args); err != nil {
			return err
		}
		if len(args) == 0 {
			return errors.New("an event without a name")
		}
		var name string
		if err := json.Unmarshal(args[0], &name); err != nil {
			return err
		}
		report{Conn: s.conn, Event: name, Args: args[1:]}.write()
	case kindAck:
		var args []json.RawMessage
		if err := json.Unmarshal([]byte(p.body), &args); err != nil {
			return err
		}
		report{Conn: s.conn, Ack: p.id, Args: args}.write()
	default:
		return fmt.Errorf("unexpected packet type %c", p.kind)
	}
	return nil
}

func (s *socket) emit(event string, args []json.RawMessage, ack *uint64) error {
	text, binary, err := encode(event, args, ack)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ws == nil {
		return errors.New("not connected")
	}
	if err := s.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		return err
	}
	for _, b := range binary {
		if err := s.ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *socket) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.ws != nil {
		s.ws.Close()
	}
}
