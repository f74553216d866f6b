package sandbox

import (
	"archive/zip"
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// compiled is a package as a participant stores it. Its id is the hash of its payload.
type compiled struct {
	id      string
	payload []byte
}

// compiledPackages are the packages of knownPackages, by the names that packageID takes.
var compiledPackages = func() map[string]compiled {
	c := compiler{}
	for _, add := range []func(){c.libraries, c.interfaces, c.bank, c.trade, c.registry, c.amulet, c.others} {
		add()
	}
	return c
}()

// packageID returns the id of a package: the hash of its payload where the participant has it, or else any.
func packageID(name string) string {
	if p, ok := compiledPackages[name]; ok {
		return p.id
	}
	var n uint64
	for _, c := range []byte(name) {
		n = n*131 + uint64(c)
	}
	return string(appendID(nil, 0, domainPackage, n, 4))
}

// Archive returns a DAR file with all packages that participants serve.
func Archive() []byte {
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for id, payload := range payloads {
		message := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), payload)
		message = protowire.AppendString(protowire.AppendTag(message, 4, protowire.BytesType), id)
		file, err := archive.Create(id + ".dalf")
		if err == nil {
			_, err = file.Write(message)
		}
		if err != nil {
			panic(err) // of memory
		}
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	return content.Bytes()
}

// listPackages answers GET /v2/packages.
func (s *Server) listPackages(w http.ResponseWriter, _ *http.Request) {
	ids := slices.Sorted(maps.Keys(s.history.vettings().packages.uploaded))
	writeJSON(w, []byte(mustJSON(map[string]any{"packageIds": ids})))
}

// packageOfPath returns the package id of the path /v2/packages/{id}.
func packageOfPath(r *http.Request) (string, bool) {
	id, ok := strings.CutPrefix(r.URL.Path, "/v2/packages/")
	return id, ok && r.Method == http.MethodGet && !strings.Contains(id, "/")
}

// packageContent answers GET /v2/packages/{id} with the payload of a package.
func (s *Server) packageContent(w http.ResponseWriter, r *http.Request) {
	id, _ := packageOfPath(r)
	if !consistsOf(id, "-_ ", 64) {
		writeError(w, refuse(8, "INVALID_ARGUMENT", "The submitted request has invalid arguments: %q is not a package id",
			id))
		return
	}
	payload := s.history.vettings().packages.payloads[id]
	if payload == nil {
		writeError(w, refuse(11, "PACKAGE_NOT_FOUND", "Could not find package %s", id))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Canton-Package-Hash", id)
	w.Write(payload)
}

// payloads are those of the packages, by their ids.
var payloads = func() map[string][]byte {
	byID := map[string][]byte{}
	for _, p := range compiledPackages {
		byID[p.id] = p.payload
	}
	return byID
}()
