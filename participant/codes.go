package participant

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"ledgerindexer/ledger"
)

// The server's error codes whose meaning depends on the request.
const (
	codePruned         = "PARTICIPANT_PRUNED_DATA_ACCESSED"
	codeAfterLedgerEnd = "OFFSET_AFTER_LEDGER_END"
)

// The server's error categories, by which an error is judged whose code is not in rulings.
const (
	categorySecurity = 5
	categoryInvalid  = 8 // in every state of the server
)

// rulings maps the server's error codes to what they mean for every request, unless a subject has its own (judge).
var rulings = map[string]ruling{
	codePruned: {act, "the participant has pruned what was asked for",
		"it can't be had from this participant any more: ask one that still has it"},
	codeAfterLedgerEnd: {act, "what was asked for is above the ledger end",
		"give an offset up to the ledger end; if it was below before, --ledger-url may be another participant"},

	// Caused by a race, or by a change while a connection was open.
	"PARTICIPANT_DATA_ACCESSED_AFTER_LEDGER_END": tryAgain,
	"ACCESS_TOKEN_EXPIRED":                       {again, "the token expired during the request", ""},
	"STALE_STREAM_AUTHORIZATION":                 {again, "the rights of the token's user changed during the request", ""},

	"UPDATE_NOT_FOUND":           {verdict: absent},
	"CONTRACT_PAYLOAD_NOT_FOUND": {verdict: absent},
	"CONTRACT_EVENTS_NOT_FOUND":  {verdict: absent},

	"PACKAGE_NAMES_NOT_FOUND":                          unknownName,
	"NO_TEMPLATES_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME": unknownName,
	"NO_INTERFACE_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME": unknownName,
	"TEMPLATES_OR_INTERFACES_NOT_FOUND":                unknownName,

	"MISSING_FIELD":                neverSent,
	"NEGATIVE_OFFSET":              neverSent,
	"NON_POSITIVE_OFFSET":          neverSent,
	"OFFSET_OUT_OF_RANGE":          neverSent,
	"DESCENDING_ORDER_MISSING_END": neverSent,
	"INVALID_UPDATES_PAGE_TOKEN":   neverSent, // reads of updates have no token

	"INVALID_CONTINUATION_TOKEN": badToken,
	"INVALID_ACS_PAGE_TOKEN":     badToken,

	"SYNCHRONIZER_NOT_FOUND":   unknownSynchronizer,
	"TOPOLOGY_STORE_NOT_FOUND": unknownSynchronizer,
	"PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER": {act,
		"the participant can't tell which synchronizer is meant: it is connected to several, or to none",
		"name it with --synchronizer, or connect the participant to a synchronizer first"},
	"PACKAGE_SERVICE_NOT_CONNECTED_TO_SYNCHRONIZER": {act, "the participant is not connected to the synchronizer",
		"connect it, or name another one with --synchronizer"},
	"TOPOLOGY_SERIAL_MISMATCH": {act, "the vetted packages have another serial than was expected: somebody else changed " +
		"them, or the serial is wrong",
		"look at the present state with `indexer packages list`; if the change is still right, repeat it with the serial " +
			"shown there"},
	"TOPOLOGY_DEPENDENCIES_NOT_VETTED": {act, "the change would leave packages vetted that need others which are not",
		"vet the dependencies too, in the same change or before (or unvet what needs them); or give --force-flag " +
			"allow-unvetted-dependencies, at the risk that transactions with these packages fail"},
	"TOPOLOGY_CANNOT_VET_DUE_TO_MISSING_PACKAGES": {act, "the participant does not have a package that is to be vetted, " +
		"or one that it needs",
		"upload the package with its dependencies to the participant first"},
	"UNRESOLVED_VETTING_REFERENCE": {act, "no package of the participant fits one of the references",
		"check its id, or its name and version, or upload the package to the participant first"},
	"AMBIGUOUS_VETTING_REFERENCE": {act, "several packages fit one of the references, and to vet takes exactly one",
		"name the package by its id, or by name and version"},
	"NOT_VALID_UPGRADE_PACKAGE": {act, "a package is no valid upgrade of another vetted one of its name",
		"take a version that is (its supplier knows), or unvet the other in the same change; or give --force-flag " +
			"allow-incompatible-upgrades, at the risk that contracts of one version can't be used with the other"},
	"KNOWN_PACKAGE_VERSION": {act, "two different packages of the same name and version would be vetted",
		"unvet the other one in the same change, or have the package built with a version of its own"},
}

var (
	tryAgain    = ruling{verdict: again}
	unknownName = ruling{act, "the participant does not know a package, template or interface that it was asked for",
		"check --templates and --interfaces (#package-name:Module:Entity), or upload the package to the participant first"}
	unknownSynchronizer = ruling{act, "the participant does not know the synchronizer", "name one that the participant " +
		"is connected to"}
	neverSent = ruling{verdict: bug, what: "the participant was asked for something that makes no sense"}
	badToken  = ruling{act, "the server refuses the token from which reading was to be continued", "begin again"}
	tooLarge  = ruling{act, "the server says that the request or its answer is too large, even with a limit of 1",
		"raise http-list-max-elements-limit on the participant; or, where it means the request, name fewer --parties, " +
			"--templates or --interfaces"}
	snapshotTooLarge = ruling{act,
		"the snapshot has more entries than the server serves in one answer, and the server has no continuation tokens",
		"raise http-list-max-elements-limit on the participant, " + noTokens}
)

const noTokens = "or read from a participant of release 3.5 or later, or narrow what is read with --templates (it " +
	"becomes the scope of the database), or do without a snapshot: `indexer run --start genesis` where the participant " +
	"is not pruned"

// snapshotMayBeCut returns the ruling for a snapshot of n entries if the server has never returned a longer list.
func snapshotMayBeCut(at ledger.Offset, n int) ruling {
	return ruling{act,
		fmt.Sprintf("the server sent %d entries of the snapshot at offset %d and may have cut it there without saying so: "+
			"it has no continuation tokens, and when it was asked for more than %d updates it did not send as many in one list",
			n, at, n),
		fmt.Sprintf("raise http-list-max-elements-limit on the participant above the number of active contracts (where it "+
			"has too few updates since it was pruned, try again when there are more than %d), ", n) + noTokens}
}

// tooMuch returns the ruling for an answer above the byte limit; the error has the limit.
func tooMuch(about subject) ruling {
	r := ruling{verdict: act, what: "the answer is larger than what is read of one", do: "ask for less"}
	switch about {
	case aboutContract:
		r.do = "see what the participant answers for this contract: no real one is as large"
	case aboutPackage:
		r.do = "nothing is lost: the types of this package are not known here; its supplier can say why it is so large"
	case aboutVetting:
		r.do = "see what the participant answers: no real list is as long; --synchronizer narrows it"
	case aboutRequest:
		r.do = "ask for less: with limit in the query of a list, with maxPageSize in the body of a page"
	}
	return r
}

// invalid returns the ruling for a request that the server would refuse in every state. The cause is what the operator
// gave.
func invalid(about subject) ruling {
	r := ruling{verdict: act, what: "the participant refuses the request as invalid"}
	switch about {
	case aboutContract:
		r.do = "check the contract's id and --parties"
	case aboutUpdate:
		r.do = "check the update's id; parties, templates and interfaces are those that were given, or with `indexer " +
			"update` those that the database was indexed for"
	case aboutVetting:
		r.do = "check --synchronizer and, of a change, the packages and the times"
	default:
		r.do = "check --parties, --templates and --interfaces; templates and interfaces are written " +
			"#package-name:Module:Entity, and servers from 3.5 on refuse package ids in place of the name"
	}
	return r
}

// invalid reports whether the server would refuse the request in every state.
func (e *Error) invalid() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	switch e.Code {
	case "":
		return e.unreadable()
	case "INVALID_ARGUMENT", "INVALID_FIELD":
		return true
	}
	const grpcInvalidArgument = 3 // decides if the server withholds the category
	return e.Category == categoryInvalid || e.Category == categorySecurity || e.Category <= 0 &&
		e.GRPCCode == grpcInvalidArgument
}

const reseed = "what is missing can't be had from this participant any more: re-seed an empty database with " +
	"`backfill`, or read from a participant that still has it"

// earliest returns the offset up to which the participant is pruned, if the error contains it.
func (e *Error) earliest() (ledger.Offset, bool) {
	text, ok := e.Context["earliest_offset"]
	if !ok {
		found := prunedUpTo.FindStringSubmatch(e.Cause)
		if found == nil {
			return 0, false
		}
		text = found[1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return ledger.Offset(n), err == nil
}

var prunedUpTo = regexp.MustCompile(`precedes pruned offset (\d+)`)
