-- Comments on the analysts' relations and columns, for those who read them in psql (\d+) or in a tool.
-- No line within a statement ends with a semicolon: goose would end the statement there.

-- +goose Up

-- ledger.updates -------------------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.updates IS 'One row per update: a transaction, a reassignment or a change of topology that this participant saw. Its events are in the other relations under the same ledger_offset.';
COMMENT ON COLUMN ledger.updates.ledger_offset IS 'Position of the update in this participant''s ledger. Offsets grow, have gaps, and mean nothing on another participant: compare participants by update_id. Indexed.';
COMMENT ON COLUMN ledger.updates.update_id IS 'Id of the update, the same on every participant that saw it. NULL only where the kind is unknown and no id could be read. Indexed.';
COMMENT ON COLUMN ledger.updates.kind IS 'transaction, reassignment, topology, or unknown: of a kind that this version does not know, see ledger.unknown_updates.';
COMMENT ON COLUMN ledger.updates.synchronizer_id IS 'The synchronizer that ordered the update. NULL where the server did not say (reassignments of release 3.3; unknown kinds).';
COMMENT ON COLUMN ledger.updates.record_time IS 'When the synchronizer recorded the update; of a topology update the time from which the change holds. Grows with the offset within one synchronizer, not across several. Microseconds, UTC. NULL only for an unknown kind without one.';
COMMENT ON COLUMN ledger.updates.effective_at IS 'Ledger time of the transaction, the "now" that its contracts saw. Not in the order of offsets. NULL for everything but transactions.';
COMMENT ON COLUMN ledger.updates.workflow_id IS 'Workflow id that the submitter gave. An empty text where there was none; NULL where the server sent no such field (topology, unknown).';
COMMENT ON COLUMN ledger.updates.command_id IS 'Command id of the submission. An empty text unless a party that the indexer reads for submitted it; NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.updates.trace_parent IS 'W3C traceparent of the submission. NULL where the server gave no trace context.';
COMMENT ON COLUMN ledger.updates.trace_state IS 'W3C tracestate of the submission. NULL where the server gave none.';
COMMENT ON COLUMN ledger.updates.external_transaction_hash IS 'Hash that was signed outside of the participant (external signing). NULL for updates that were not submitted this way.';
COMMENT ON COLUMN ledger.updates.paid_traffic_cost IS 'Traffic in bytes that the submission was charged. NULL where the server did not say: only the submitting participant knows it, and none says it before release 3.4.';
COMMENT ON COLUMN ledger.updates.transaction_hash IS 'Hash of the transaction. NULL where the server did not say (before release 3.6).';
COMMENT ON COLUMN ledger.updates.extra IS 'Fields that the server sent and this version does not know, under their own names. NULL: none.';

-- ledger.created_events ------------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.created_events IS 'One row per creation event: a contract created by a transaction, arriving on a synchronizer by an assignment, or named by the snapshot that indexing began with. A contract that was reassigned has several rows: count(DISTINCT contract_id) counts contracts.';
COMMENT ON COLUMN ledger.created_events.ledger_offset IS 'Offset of the event. With origin snapshot it can lie below ledger.oldest_offset(): the snapshot names when each contract was last activated. Of what a change of the scope added it is the offset of the change. Indexed.';
COMMENT ON COLUMN ledger.created_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.created_events.origin IS 'transaction: created here. assignment: came from another synchronizer. snapshot: was there when indexing began, or when the scope was changed.';
COMMENT ON COLUMN ledger.created_events.contract_id IS 'Id of the contract. Indexed.';
COMMENT ON COLUMN ledger.created_events.template_id IS 'Template as the server sent it, package-id:Module:Entity. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.created_events.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.created_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.created_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.created_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.created_events.representative_package_id IS 'Package whose types the payload is shown in, where the server says so. NULL before release 3.4.';
COMMENT ON COLUMN ledger.created_events.payload IS 'The contract''s arguments. Amounts and 64-bit integers are texts in it: cast them, (payload->>''amount'')::numeric. NULL where the contract matched an interface filter only: read ledger.interface_views; and where it was redacted: see ledger.redactions. An object with the key $exact stands in for a payload that jsonb cannot hold: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.created_events.contract_key IS 'The contract''s key. NULL: its template has none, or it was redacted. Can be a stand-in with the key $exact, as payload can.';
COMMENT ON COLUMN ledger.created_events.contract_key_hash IS 'Hash of the key. Empty where there is no key; NULL where the server sent no such field (before release 3.5), or it was redacted.';
COMMENT ON COLUMN ledger.created_events.signatories IS 'Parties that signed the contract.';
COMMENT ON COLUMN ledger.created_events.observers IS 'Parties that may see the contract beside its signatories. Never names a signatory.';
COMMENT ON COLUMN ledger.created_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event. Depends on the scope, unlike signatories and observers.';
COMMENT ON COLUMN ledger.created_events.created_at IS 'Ledger time of the contract''s creation; for an assignment too, so it can be older than the event. Microseconds, UTC.';
COMMENT ON COLUMN ledger.created_events.acs_delta IS 'true: the event made the contract active for the reading parties. false: it did not; they only witnessed it, or the same transaction archived it again. NULL: the server does not say (release 3.3). Totals of what is held must leave out false; the shape acs-delta brings none of them.';
COMMENT ON COLUMN ledger.created_events.created_event_blob IS 'The creation event in the participant''s own encoding, for disclosing the contract to others. Empty or NULL unless --blobs asked for it.';
COMMENT ON COLUMN ledger.created_events.workflow_id IS 'Workflow id of the event''s update. Costs a look-up per row, unless the row comes from a snapshot.';
COMMENT ON COLUMN ledger.created_events.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.created_events.synchronizer_id IS 'Synchronizer on which the contract became active; of an assignment the target. NULL where the server did not say.';
COMMENT ON COLUMN ledger.created_events.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot, which a condition on the time therefore leaves out: use created_at for them.';
COMMENT ON COLUMN ledger.created_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.created_events.template_number IS 'A number for the template_id with its package_name and representative_package_id, in this database. For joins with ledger.active_events, and to group many rows before they are joined with ledger.template_numbers.';

-- ledger.archived_events -----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.archived_events IS 'One row per archival of a contract, from an archived event (shape acs-delta) or a consuming exercise (shape ledger-effects). Join it to creations by contract_id alone. A contract can have an archival here and no creation: it was created before indexing began, or never shown.';
COMMENT ON COLUMN ledger.archived_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.archived_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.archived_events.contract_id IS 'The contract that ended. Indexed.';
COMMENT ON COLUMN ledger.archived_events.template_id IS 'Template as the server sent it. It may name another package than the contract''s creation did: never join by it.';
COMMENT ON COLUMN ledger.archived_events.package_id IS 'The part of template_id before the first colon; may differ from that of the creation.';
COMMENT ON COLUMN ledger.archived_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.archived_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.archived_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.archived_events.choice IS 'The consuming choice that ended the contract, as in ledger.exercised_events. NULL: an archived event, which does not name it (shape acs-delta).';
COMMENT ON COLUMN ledger.archived_events.acting_parties IS 'Parties that exercised the choice. NULL where choice is NULL. Costs a look-up per row.';
COMMENT ON COLUMN ledger.archived_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.archived_events.acs_delta IS 'true: the contract was active for the reading parties until here; always so for archived events. false: they only witnessed it, or the same transaction created it. NULL: a consuming exercise of a server that does not say (release 3.3).';
COMMENT ON COLUMN ledger.archived_events.implemented_interfaces IS 'The interfaces named by --interfaces that the template implements. NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.archived_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.archived_events.synchronizer_id IS 'Synchronizer on which the contract was archived.';
COMMENT ON COLUMN ledger.archived_events.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.archived_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- ledger.exercised_events ----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.exercised_events IS 'One row per exercise of a choice. Empty with the shape acs-delta: only --shape ledger-effects brings exercises.';
COMMENT ON COLUMN ledger.exercised_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.exercised_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.exercised_events.contract_id IS 'The contract on which the choice was exercised. Indexed.';
COMMENT ON COLUMN ledger.exercised_events.template_id IS 'Template as the server sent it. It may name another package than the contract''s creation did: never join by it.';
COMMENT ON COLUMN ledger.exercised_events.package_id IS 'The part of template_id before the first colon; may differ from that of the creation.';
COMMENT ON COLUMN ledger.exercised_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.exercised_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.exercised_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.exercised_events.interface_id IS 'The interface that defines the choice, package-id:Module:Entity. NULL: the template itself defines it.';
COMMENT ON COLUMN ledger.exercised_events.choice IS 'Name of the choice.';
COMMENT ON COLUMN ledger.exercised_events.choice_argument IS 'The choice''s arguments. NULL: they were redacted, see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.exercised_events.exercise_result IS 'What the choice returned; NULL where the server sent null, or it was redacted. Can be a stand-in with the key $exact.';
COMMENT ON COLUMN ledger.exercised_events.acting_parties IS 'Parties that exercised the choice.';
COMMENT ON COLUMN ledger.exercised_events.consuming IS 'true: the exercise archived the contract, and it is in ledger.archived_events too.';
COMMENT ON COLUMN ledger.exercised_events.last_descendant_node_id IS 'Events of the same update with node ids above node_id, up to this one, are consequences of this exercise. Equal to node_id where there are none.';
COMMENT ON COLUMN ledger.exercised_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.exercised_events.acs_delta IS 'true: the exercise archived a contract that was active for the reading parties. false: it did not. NULL: the server does not say (release 3.3).';
COMMENT ON COLUMN ledger.exercised_events.implemented_interfaces IS 'The interfaces named by --interfaces that the template implements. NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.exercised_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.exercised_events.synchronizer_id IS 'Synchronizer of the transaction.';
COMMENT ON COLUMN ledger.exercised_events.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.exercised_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- ledger.reassignments -------------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.reassignments IS 'One row per assigned or unassigned event: a contract moves between synchronizers by an unassignment from the source and an assignment to the target, which share reassignment_id. Reassignments that were in flight at the snapshot are here too.';
COMMENT ON COLUMN ledger.reassignments.ledger_offset IS 'Offset of the event. Of a reassignment that was in flight at the snapshot it can lie below ledger.oldest_offset(). Indexed.';
COMMENT ON COLUMN ledger.reassignments.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.reassignments.kind IS 'unassigned: the contract left the source. assigned: it arrived on the target. An assignment that was in flight at a snapshot is a row here, but the contract is not active on the target because of it.';
COMMENT ON COLUMN ledger.reassignments.contract_id IS 'The contract that moves; its id stays. Indexed.';
COMMENT ON COLUMN ledger.reassignments.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.reassignments.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.reassignments.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.reassignments.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.reassignments.reassignment_id IS 'Id that the two events of one move share.';
COMMENT ON COLUMN ledger.reassignments.source_synchronizer_id IS 'The synchronizer that the contract leaves.';
COMMENT ON COLUMN ledger.reassignments.target_synchronizer_id IS 'The synchronizer that the contract goes to.';
COMMENT ON COLUMN ledger.reassignments.submitter IS 'Party that submitted the event. An empty text where none did (repairs); NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.reassignments.reassignment_counter IS 'How often the contract has moved: 1 for its first move. The two events of one move share it.';
COMMENT ON COLUMN ledger.reassignments.assignment_exclusivity IS 'Until this time, on the target, only the submitter may assign the contract. NULL for assignments, and where the server did not say.';
COMMENT ON COLUMN ledger.reassignments.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.reassignments.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.reassignments.synchronizer_id IS 'Synchronizer of the event: the source of an unassignment, the target of an assignment.';
COMMENT ON COLUMN ledger.reassignments.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.reassignments.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- ledger.topology_events -----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.topology_events IS 'One row per change of who hosts a party: a participant was given, changed or lost the right to act for it.';
COMMENT ON COLUMN ledger.topology_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.topology_events.node_id IS 'Place of the event within its update, counted from 0 (the server sends no node ids for these). (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.topology_events.kind IS 'added, changed, revoked, onboarding, or unknown: of a kind that this version does not know, see ledger.unknown_updates.';
COMMENT ON COLUMN ledger.topology_events.party_id IS 'The party. NULL for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.participant_id IS 'The participant that hosts it. NULL for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.permission IS 'The right it now has, PARTICIPANT_PERMISSION_SUBMISSION, _CONFIRMATION or _OBSERVATION. NULL for a revocation and for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.topology_events.synchronizer_id IS 'Synchronizer on which the change holds.';
COMMENT ON COLUMN ledger.topology_events.record_time IS 'From when the change holds, not when it was recorded. Microseconds, UTC.';
COMMENT ON COLUMN ledger.topology_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- ledger.active_contracts ----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.active_contracts IS 'One row per contract and synchronizer that is active at ledger.latest_offset(). A contract that is active on two synchronizers has two rows: count(DISTINCT contract_id) counts contracts. Contracts from before indexing began are missing where ledger.state_floor() is NULL. Counting and grouping by template is cheap; payload, contract_key, parties and created_at cost a look-up per row each.';
COMMENT ON COLUMN ledger.active_contracts.contract_id IS 'Id of the contract. Indexed: equal to one id, or joined to ids.';
COMMENT ON COLUMN ledger.active_contracts.synchronizer_id IS 'Synchronizer on which the contract is active. NULL where the server did not say.';
COMMENT ON COLUMN ledger.active_contracts.template_id IS 'Template as the server sent it with the activation, package-id:Module:Entity. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.active_contracts.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.active_contracts.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.active_contracts.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.active_contracts.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.active_contracts.payload IS 'The contract''s arguments, as in ledger.created_events. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.contract_key IS 'The contract''s key; NULL: it has none. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.signatories IS 'Parties that signed the contract. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.observers IS 'Parties that may see the contract beside its signatories. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.witness_parties IS 'The parties that the indexer reads for (its scope) and that see the contract. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.created_at IS 'Ledger time of the contract''s creation, not of its arrival on this synchronizer. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.created_offset IS 'Offset of the contract''s creation, on whichever synchronizer. Of a contract that has moved it costs a look-up, and is NULL where its creation is not stored: assignments don''t say it, nor does a snapshot for a contract that had moved before.';
COMMENT ON COLUMN ledger.active_contracts.activated_offset IS 'Offset of the event that made the contract active here: its creation, or its assignment to this synchronizer. Indexed. With activated_node_id it names the row of ledger.created_events, and is unique.';
COMMENT ON COLUMN ledger.active_contracts.activated_node_id IS 'Node id of that event.';
COMMENT ON COLUMN ledger.active_contracts.reassignment_counter IS 'How often the contract had moved when it came to this synchronizer. 0: it was created on it.';

-- ledger.active_events -------------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.active_events IS 'The rows of ledger.active_contracts as the creation events since which the contracts are active. For joins with ledger.created_events by all three columns: the planner begins with the active contracts of the template that is asked for, if there are fewer of them.';
COMMENT ON COLUMN ledger.active_events.ledger_offset IS 'Offset of the event: activated_offset in ledger.active_contracts.';
COMMENT ON COLUMN ledger.active_events.node_id IS 'Node id of the event. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.active_events.template_number IS 'As in ledger.created_events.';

-- ledger.active_counts -------------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.active_counts IS 'How many rows ledger.active_contracts has, by template id: the fastest way to count by template or by package, because what is added up is one number for each template id.';
COMMENT ON COLUMN ledger.active_counts.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.active_counts.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.active_counts.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.active_counts.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.active_counts.entity_name IS 'Name of the template.';
COMMENT ON COLUMN ledger.active_counts.contracts IS 'How many contracts of this template id are active. One that is active on two synchronizers counts twice.';

-- ledger.template_numbers ----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.template_numbers IS 'The names of each template_number: of every template that something stored names, or named. To count or sum many events or lifetimes by template, group them by template_number first, and join the few sums with this.';
COMMENT ON COLUMN ledger.template_numbers.template_number IS 'As in ledger.created_events. Unique.';
COMMENT ON COLUMN ledger.template_numbers.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.template_numbers.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.template_numbers.package_name IS 'Name of the package, the same over its releases. A template has a number for each release: add up.';
COMMENT ON COLUMN ledger.template_numbers.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.template_numbers.entity_name IS 'Name of the template.';

-- ledger.offset_checkpoints --------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.offset_checkpoints IS 'How far in time each synchronizer was when the server reached an offset. These are hints: the server sends them now and then, and only while the indexer waits for new updates.';
COMMENT ON COLUMN ledger.offset_checkpoints.ledger_offset IS 'The offset. It need not be that of an update. (ledger_offset, synchronizer_id) is unique. Indexed.';
COMMENT ON COLUMN ledger.offset_checkpoints.synchronizer_id IS 'The synchronizer.';
COMMENT ON COLUMN ledger.offset_checkpoints.record_time IS 'The synchronizer''s record time at the offset, the latest that was reported. No update of the synchronizer with a greater offset has an earlier record time.';
COMMENT ON COLUMN ledger.offset_checkpoints.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- ledger.unknown_updates -----------------------------------------------------------------------------------------

COMMENT ON VIEW ledger.unknown_updates IS 'One row per update, event or snapshot entry of a kind that this version does not know, as the server sent it. Empty in the usual case. Rows here mean that the other relations may lack something: a newer release of the indexer may know the kind.';
COMMENT ON COLUMN ledger.unknown_updates.ledger_offset IS 'Offset of the update; of a snapshot entry the offset of the snapshot. Indexed.';
COMMENT ON COLUMN ledger.unknown_updates.node_id IS 'Node id of the event. NULL for a whole update, for a snapshot entry, and where the event names none.';
COMMENT ON COLUMN ledger.unknown_updates.kind IS 'Name of the kind as the server sent it. JsEmpty: an empty snapshot entry that came with something unknown in or around it.';
COMMENT ON COLUMN ledger.unknown_updates.raw IS 'What the server sent, an object with kind as its only key. NULL: it was redacted, see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.unknown_updates.update_id IS 'Id of the update. NULL where it could not be read, and for a snapshot entry.';
COMMENT ON COLUMN ledger.unknown_updates.synchronizer_id IS 'Synchronizer of the update. NULL where it could not be read, and for a snapshot entry.';
COMMENT ON COLUMN ledger.unknown_updates.record_time IS 'When the synchronizer recorded the update. NULL where it could not be read, and for a snapshot entry.';

-- Tables beneath -------------------------------------------------------------------------------------------------

COMMENT ON TABLE updates IS 'Facts: one row per update. Shown as ledger.updates.';
COMMENT ON COLUMN updates.seen_by_ref IS 'Parties that may see at least one of its events: one of the lists of its events. NULL: none.';
COMMENT ON COLUMN updates.seen_also_by_ref IS 'More of them: another list, where that one has not all. NULL: no more.';
COMMENT ON COLUMN updates.seen_by_others_ref IS 'All others, where both have not all. NULL: no more.';
COMMENT ON TABLE created IS 'Facts: creation events of covered updates, and of entries of a snapshot or a resync (origin snapshot). Shown as ledger.created_events.';
COMMENT ON COLUMN created.stakeholders_ref IS 'Signatories and observers. NULL: not served.';
COMMENT ON TABLE archived IS 'Facts: archived events. Shown, with the consuming rows of exercised, as ledger.archived_events.';
COMMENT ON TABLE exercised IS 'Facts: exercised events. Shown as ledger.exercised_events.';
COMMENT ON TABLE interface_views IS 'Facts: interface views of created. Shown as ledger.interface_views.';
COMMENT ON COLUMN interface_views.seen_by_ref IS 'The parties that may see the creation event.';
COMMENT ON TABLE reassignments IS 'Facts: assigned and unassigned events, and those that were in flight at a snapshot (created_offset). Shown as ledger.reassignments.';
COMMENT ON TABLE topology_events IS 'Facts: topology events. Shown as ledger.topology_events.';
COMMENT ON TABLE unknown_elements IS 'Elements of an unknown kind, raw, of covered updates. Shown as ledger.unknown_updates.';
COMMENT ON TABLE offset_checkpoints IS 'The server''s hints about record times, the latest per offset and synchronizer. Not part of the coverage.';
COMMENT ON VIEW first_creations IS 'Offsets of contracts'' creations, for look-ups by contract_id. A contract can have two rows, with the same offset.';
COMMENT ON VIEW creations IS 'Creation events, for look-ups by (ledger_offset, node_id).';
