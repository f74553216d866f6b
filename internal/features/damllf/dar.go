package damllf

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// mostPayload limits the bytes of a package in a DAR file.
const mostPayload = 64 << 20

// ReadDAR returns the payloads of all packages in a DAR file, by their ids: it is a zip of messages with a payload and
// its hash. The error names what in it is no package.
func ReadDAR(content []byte) (map[string][]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	payloads := map[string][]byte{}
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, ".dalf") {
			continue
		}
		id, payload, err := readPackage(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		payloads[id] = payload
	}
	if len(payloads) == 0 {
		return nil, errors.New("there is no package in it")
	}
	return payloads, nil
}

func readPackage(file *zip.File) (id string, payload []byte, err error) {
	content, err := file.Open()
	if err != nil {
		return "", nil, err
	}
	defer content.Close()
	message, err := io.ReadAll(io.LimitReader(content, mostPayload+1))
	switch {
	case err != nil:
		return "", nil, err
	case len(message) > mostPayload:
		return "", nil, fmt.Errorf("it has more than %d MiB", mostPayload>>20)
	}
	var d decoder
	payload, hash := d.last(message, 3), string(d.last(message, 4))
	if d.err != nil {
		return "", nil, d.err
	}
	if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != hash {
		return "", nil, errors.New("its bytes do not have the hash that it names")
	}
	return hash, payload, nil
}
