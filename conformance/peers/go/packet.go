// Socket.IO packets of protocol 5, the JSON part as raw text.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	kindConnect    = '0'
	kindDisconnect = '1'
	kindEvent      = '2'
	kindAck        = '3'
)

type packet struct {
	kind        byte
	id          *uint64
	attachments int
	body        string
	binary      [][]byte
}

func decode(text string) (*packet, error) {
	if text == "" {
		return nil, errors.New("empty packet")
	}
	p := &packet{kind: text[0]}
	rest := text[1:]
	if p.kind == '5' || p.kind == '6' {
		count, tail, found := strings.Cut(rest, "-")
		n, err := strconv.Atoi(count)
		if !found || err != nil {
			return nil, fmt.Errorf("binary packet %.40q", text)
		}
		p.attachments, rest = n, tail
		p.kind -= 3
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits > 0 {
		id, err := strconv.ParseUint(rest[:digits], 10, 64)
		if err != nil {
			return nil, err
		}
		p.id, rest = &id, rest[digits:]
	}
	p.body = rest
	return p, nil
}

// fill puts the attachments where their placeholders stand, in the harness's form.
func (p *packet) fill() error {
	filled, err := rewrite([]byte(p.body), func(object map[string]any) (any, error) {
		if object["_placeholder"] != true {
			return nil, nil
		}
		num, ok := object["num"].(json.Number)
		if !ok {
			return nil, errors.New("placeholder without a number")
		}
		n, err := strconv.Atoi(num.String())
		if err != nil || n < 0 || n >= len(p.binary) {
			return nil, fmt.Errorf("placeholder %s of %d", num, len(p.binary))
		}
		return map[string]any{"$binary": base64.StdEncoding.EncodeToString(p.binary[n])}, nil
	})
	p.body = string(filled)
	return err
}

func encode(event string, args []json.RawMessage, ack *uint64) (string, [][]byte, error) {
	parts := [][]byte{quoted(event)}
	var binary [][]byte
	for _, arg := range args {
		if bytes.Contains(arg, []byte(`"$binary"`)) {
			taken, err := rewrite(arg, func(object map[string]any) (any, error) {
				text, ok := object["$binary"].(string)
				if !ok {
					return nil, nil
				}
				data, err := base64.StdEncoding.DecodeString(text)
				binary = append(binary, data)
				return map[string]any{"_placeholder": true, "num": len(binary) - 1}, err
			})
			if err != nil {
				return "", nil, err
			}
			arg = taken
		}
		parts = append(parts, arg)
	}
	head := "42"
	if len(binary) > 0 {
		head = fmt.Sprintf("45%d-", len(binary))
	}
	if ack != nil {
		head += strconv.FormatUint(*ack, 10)
	}
	return head + "[" + string(bytes.Join(parts, []byte(","))) + "]", binary, nil
}

// rewrite replaces the objects for which `change` has an answer, wherever they stand in the text.
func rewrite(text []byte, change func(map[string]any) (any, error)) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	value, err := walk(value, change)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func walk(value any, change func(map[string]any) (any, error)) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		if changed, err := change(v); changed != nil || err != nil {
			return changed, err
		}
		for key := range v {
			if v[key], err = walk(v[key], change); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = walk(v[i], change); err != nil {
				return nil, err
			}
		}
	}
	return value, err
}
