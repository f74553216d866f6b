-- name: ExercisedCopy :copyfrom
INSERT INTO indexer.exercised (ledger_offset, node_id, contract_id, template_ref, synchronizer_ref, record_time, interface_id, choice,
    choice_argument, exercise_result, acting_parties_ref, consuming, last_descendant_node_id, witness_parties_ref, acs_delta,
    implemented_interfaces, extra)
VALUES (@ledger_offset, @node_id, @contract_id, @template_ref, @synchronizer_ref, @record_time, @interface_id, @choice,
    @choice_argument, @exercise_result, @acting_parties_ref, @consuming, @last_descendant_node_id, @witness_parties_ref, @acs_delta,
    @implemented_interfaces, @extra);
