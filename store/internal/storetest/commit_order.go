package storetest

import (
	"context"
)

// CommitOrder is the place of a write among others, as a test wants it.
type CommitOrder struct {
	IsFirst         bool
	OnBegin, OnWait func() error // nil: nothing is to be waited for
	OnBegan         func()       // nil: nobody wants to know
}

// First implements leadership.CommitOrder.
func (t CommitOrder) First() bool { return t.IsFirst }

// Begin implements leadership.CommitOrder.
func (t CommitOrder) Begin(context.Context) error {
	if t.OnBegin == nil {
		return nil
	}
	return t.OnBegin()
}

// Began implements leadership.CommitOrder.
func (t CommitOrder) Began() {
	if t.OnBegan != nil {
		t.OnBegan()
	}
}

// Wait implements leadership.CommitOrder.
func (t CommitOrder) Wait(context.Context) error {
	if t.OnWait == nil {
		return nil
	}
	return t.OnWait()
}
