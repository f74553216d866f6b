package tables

// What a number in a row refers to. The dictionary's table is named for it, with an s, and the table's key with _ref.
const (
	Template     = "template"
	Synchronizer = "synchronizer"
	PartyList    = "party_list"
)

// References says what the numbers in columns of these names refer to, in every table but the dictionary itself.
var References = map[string]string{
	"template_ref": Template, "synchronizer_ref": Synchronizer, "source_ref": Synchronizer, "target_ref": Synchronizer,
	"domain_ref":      Synchronizer,
	"signatories_ref": PartyList, "observers_ref": PartyList, "witness_parties_ref": PartyList,
	"acting_parties_ref": PartyList,
	"stakeholders_ref":   PartyList, "seen_by_ref": PartyList, "seen_also_by_ref": PartyList,
	"seen_by_others_ref": PartyList,
}
