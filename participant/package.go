package participant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Where packages are, and how large one may be.
const (
	pathPackages = "/v2/packages/"
	// packageBody is the largest package that is read, in bytes. The largest known one has a few MB.
	packageBody = 64 << 20
)

// Package returns the content of a package that the participant has: bytes whose SHA-256, in hexadecimal, is the id.
// The caller may change it. It needs only a valid token.
//
// Errors: ledger.ErrNotFound where the participant does not have the package; ledger.ErrNotOffered where the server
// does not have the operation (interface.md does not); a *ledger.Problem where the package is larger than what is read;
// an *Error, which may be tried again, for the rest, and where the bytes are not those of the package. An id that is
// none is not asked for.
func (c *Client) Package(ctx context.Context, id string) ([]byte, error) {
	const operation = "package"
	if !isPackageID(id) {
		return nil, fmt.Errorf("read package %s: a package id is 64 hexadecimal digits, in lower case", ledger.Quoted(id))
	}
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathPackages + id, MaxBytes: packageBody,
		Binary: true})
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", id, c.explain(ctx, err, purpose{about: aboutPackage}))
	}
	content := slices.Clone(a.Body) // its buffer can be much larger
	jsonhttp.Release(a.Body)
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != id {
		c.connectionChanged() // something else answered
		return nil, fmt.Errorf("read package %s: %w", id, contradiction(operation, "the answer is not this package: its %d "+
			"bytes have the hash %x", len(content), sum))
	}
	return content, nil
}

// isPackageID reports whether a text has the form of a package id. Nothing else is put into a path.
func isPackageID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == id
}
