// Package storetest is what the tests of package store and of package audit share: a database to look into, and input
// that is made up. It doesn't import package store, so that its own tests can use this.
package storetest
