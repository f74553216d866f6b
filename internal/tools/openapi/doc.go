// Package openapi checks requests and responses of tests against the servers' own OpenAPI documents: types, required
// and unknown members, enumerations and the variants of sum types. An optional member may be null, as the servers send
// it.
//
// It supports only the part of OpenAPI that these documents use.
package openapi
