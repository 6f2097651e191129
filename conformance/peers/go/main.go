// A Socket.IO client of our own over gorilla/websocket: commands on standard input, reports on standard output, one JSON
// value a line. Arguments stay raw JSON text in both directions, so that nothing of a payload is respelled on the way.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

type command struct {
	Do    string            `json:"do"`
	Conn  string            `json:"conn"`
	URL   string            `json:"url"`
	Event string            `json:"event"`
	Args  []json.RawMessage `json:"args"`
	Ack   *uint64           `json:"ack"`
}

type report struct {
	Conn  string            `json:"conn"`
	Event string            `json:"event,omitempty"`
	Ack   *uint64           `json:"ack,omitempty"`
	Args  []json.RawMessage `json:"args"`
}

var writing sync.Mutex

func (r report) write() {
	if r.Args == nil {
		r.Args = []json.RawMessage{}
	}
	writing.Lock()
	defer writing.Unlock()
	args := []byte("[")
	for i, arg := range r.Args { // json.Marshal would compact and escape the raw text
		if i > 0 {
			args = append(args, ',')
		}
		args = append(args, arg...)
	}
	conn, _ := json.Marshal(r.Conn)
	event, _ := json.Marshal(r.Event)
	ack := ""
	if r.Ack != nil {
		ack = fmt.Sprintf(`"ack":%d,`, *r.Ack)
	} else {
		ack = fmt.Sprintf(`"event":%s,`, event)
	}
	fmt.Fprintf(os.Stdout, "{\"conn\":%s,%s\"args\":%s]}\n", conn, ack, args)
}

func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(text)
	return raw
}

func main() {
	sockets := map[string]*socket{}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var c command
		if err := json.Unmarshal(line, &c); err != nil {
			fmt.Fprintln(os.Stderr, "command:", err)
			os.Exit(1)
		}
		switch c.Do {
		case "open":
			s := &socket{conn: c.Conn, url: c.URL}
			sockets[c.Conn] = s
			go s.run()
		case "emit":
			if err := sockets[c.Conn].emit(c.Event, c.Args, c.Ack); err != nil {
				fmt.Fprintln(os.Stderr, "emit:", err)
			}
		case "close":
			if s := sockets[c.Conn]; s != nil {
				s.close()
			}
			delete(sockets, c.Conn)
			report{Conn: c.Conn, Event: "$closed"}.write()
		}
	}
}
