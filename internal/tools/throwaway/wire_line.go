package throwaway

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
)

// line is one connection through a wire.
type line struct {
	wire           *Wire
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}

	pid   atomic.Uint32 // of the session at the server
	lost  atomic.Bool   // no message passes any more
	mute  atomic.Bool   // nothing more is sent to the client
	full  atomic.Pointer[wireOrder]
	ready chan string // while mute: the tag of the server's completed command; closed when the server has left
}

// cut ends the connection for both sides.
func (l *line) cut() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// pass waits while the wire is stalled, or the line is lost.
func (l *line) pass() error {
	gate := l.wire.gate()
	if l.lost.Load() {
		gate = nil
	}
	select {
	case <-gate:
		return nil
	case <-l.ended:
		return errCut
	}
}

// forward passes the client's messages on.
func (l *line) forward() error {
	for first := true; ; first = false {
		message, err := readMessage(l.client, first)
		if err != nil {
			return err
		}
		if err := l.pass(); err != nil {
			return err
		}
		switch {
		case first:
		case isCommit(message):
			if order := l.wire.take(false); order != nil {
				return l.commit(order, message)
			}
		case message[0] == 'd' && len(message) > 6:
			if order := l.wire.take(true); order != nil {
				if err := l.copy(order, message); err != nil {
					return err
				}
				continue
			}
		}
		if _, err := l.server.Write(message); err != nil {
			return err
		}
	}
}

// commit cuts the connection before a COMMIT or after it.
func (l *line) commit(order *wireOrder, message []byte) error {
	if order.fault == CutBeforeCommit {
		l.cut()
		order.delivered <- true
		return errCut
	}
	l.mute.Store(true)
	if _, err := l.server.Write(message); err != nil {
		order.delivered <- false
		return err
	}
	done := <-l.ready // "" if the server went away: the outcome is unknown
	l.cut()
	order.delivered <- done == "COMMIT" // false if it was rolled back
	return errCut
}

// copy disturbs a COPY between two halves of a message with rows. Without an error the connection stays open, and the
// whole message was handled.
func (l *line) copy(order *wireOrder, message []byte) error {
	half := (len(message) + 5) / 2
	if _, err := l.server.Write(copyData(message[5:half])); err != nil {
		order.delivered <- false
		return err
	}
	switch order.fault {
	case CutCopy:
		l.cut()
		order.delivered <- true
		return errCut
	case DiskFull:
		l.full.Store(order)
		failed, err := (&pgproto3.CopyFail{Message: "the disk is full"}).Encode(nil)
		if err == nil {
			_, err = l.server.Write(failed) // the server drops the rest of the COPY, as after an error of its own
		}
		if err != nil && l.full.CompareAndSwap(order, nil) {
			order.delivered <- false
		}
		return err
	}
	order.delivered <- l.wire.endSession(l.pid.Load())
	_, err := l.server.Write(copyData(message[half:]))
	return err
}

func copyData(rows []byte) []byte {
	message := binary.BigEndian.AppendUint32([]byte{'d'}, uint32(len(rows)+4))
	return append(message, rows...)
}

// answer passes the server's messages on.
func (l *line) answer() error {
	done := ""
	for {
		message, err := readMessage(l.server, false)
		if err != nil {
			return err
		}
		switch message[0] {
		case 'K':
			l.pid.Store(binary.BigEndian.Uint32(message[5:]))
		case 'C':
			done = string(bytes.TrimRight(message[5:], "\x00"))
		case 'E':
			if message, err = l.failure(message); err != nil {
				return err
			}
		case 'Z':
			if l.mute.Load() {
				l.ready <- done
				return nil
			}
		}
		if l.mute.Load() {
			continue
		}
		if err := l.pass(); err != nil {
			return err
		}
		if _, err := l.client.Write(message); err != nil {
			return err
		}
	}
}

// failure notes an error of the server, or replaces one that the wire has caused with the injected error.
func (l *line) failure(message []byte) ([]byte, error) {
	if order := l.full.Swap(nil); order != nil {
		order.delivered <- true
		return (&pgproto3.ErrorResponse{
			Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: codeDiskFull,
			Message: "could not extend file: No space left on device (injected)", Hint: "Check free disk space.",
		}).Encode(nil)
	}
	var failed pgproto3.ErrorResponse
	if err := failed.Decode(message[5:]); err != nil {
		return nil, err
	}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.saw[failed.Code]++
	return message, nil
}

// isCommit reports whether a message is the COMMIT of pgx.
func isCommit(message []byte) bool {
	return message[0] == 'Q' && strings.EqualFold(string(bytes.TrimRight(message[5:], "\x00; ")), "commit")
}

// readMessage reads one message. A client's first one has no type byte.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	message := make([]byte, len(head)+int(binary.BigEndian.Uint32(head[len(head)-4:]))-4)
	copy(message, head)
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}
