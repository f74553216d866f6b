package storetest

import (
	"context"
)

// Turn is the turn of a write among others.
type Turn struct {
	IsFirst         bool
	OnBegin, OnWait func() error // nil: nothing is to be waited for
	OnBegan         func()       // nil: nobody wants to know
}

// First implements leadership.CommitOrder.
func (t Turn) First() bool { return t.IsFirst }

// Begin implements leadership.CommitOrder.
func (t Turn) Begin(context.Context) error {
	if t.OnBegin == nil {
		return nil
	}
	return t.OnBegin()
}

// Began implements leadership.CommitOrder.
func (t Turn) Began() {
	if t.OnBegan != nil {
		t.OnBegan()
	}
}

// Wait implements leadership.CommitOrder.
func (t Turn) Wait(context.Context) error {
	if t.OnWait == nil {
		return nil
	}
	return t.OnWait()
}
