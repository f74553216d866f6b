package status

import (
	"regexp"
	"slices"
	"strings"
)

// What looks like a party, or an id, in a text for the public.
var (
	quotedParty = regexp.MustCompile(`"[^"]*::[^"]*"`) // a hint may have spaces
	party       = regexp.MustCompile("[^\\s\"'`(),;<>\\[\\]{}]*::[^\\s\"'`(),;<>\\[\\]{}]*")
	longHex     = regexp.MustCompile(`[0-9a-fA-F]{20,}`) // ids of contracts, updates and packages, and fingerprints
)

// Public returns a text, such as an error of a server, in which no party and no contract is named: they are left out,
// and so is every other id that looks like one.
func Public(text string) string {
	text = quotedParty.ReplaceAllString(text, `"…"`)
	text = party.ReplaceAllString(text, "…")
	return longHex.ReplaceAllString(text, "…")
}

// WhatToDo separates an error's cure, which is empty if there is none, from what happened.
func WhatToDo(text string) (what, do string) {
	for _, mark := range []string{"; what to do: ", ". What to do: "} {
		if what, do, found := strings.Cut(text, mark); found {
			return what, do
		}
	}
	return text, ""
}

// Public returns a copy of a report that names no party and no contract: ids are left out, also of errors.
func (r *Report) Public() *Report {
	public := *r
	public.ParticipantID = "" // that of the party that administers it
	public.Tasks = slices.Clone(r.Tasks)
	for i := range public.Tasks {
		public.Tasks[i].Failure = Public(public.Tasks[i].Failure)
	}
	public.Streams = slices.Clone(r.Streams)
	for i := range public.Streams {
		s := &public.Streams[i]
		s.Hosting = slices.Clone(s.Hosting)
		for j := range s.Hosting {
			s.Hosting[j].Party, s.Hosting[j].Synchronizer = "…", ""
		}
	}
	if r.Transactions != nil {
		history := *r.Transactions
		history.Cursor, history.NetworkID = "", ""
		public.Transactions = &history
	}
	if r.Ledger != nil {
		end := *r.Ledger
		end.Error = Public(end.Error)
		public.Ledger = &end
	}
	return &public
}
