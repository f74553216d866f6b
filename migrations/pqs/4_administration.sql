-- The functions of the Participant Query Store that change its database. Nothing is changed here: what is asked for is checked as there, and
-- then a warning says that nothing was done, where a program can continue without it, or an error what to do instead.

CREATE OR REPLACE FUNCTION pqs.__check_pruning(of_offset bigint) RETURNS void
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    IF ledger.latest_offset() IS NULL OR of_offset < ledger.oldest_offset() THEN
        RAISE EXCEPTION 'Illegal pruning offset % is outside lower bounds of contiguous history', of_offset;
    ELSIF of_offset = ledger.latest_offset() THEN
        RAISE EXCEPTION 'Illegal pruning offset % coincides with latest consistent checkpoint of contiguous history', of_offset;
    ELSIF of_offset > ledger.latest_offset() THEN
        RAISE EXCEPTION 'Illegal pruning offset % is beyond upper bounds of contiguous history', of_offset;
    END IF;
    RAISE WARNING 'nothing is pruned: that is not done by a query here'
        USING HINT = format('The operator prunes with indexer prune --before %s --apply.', of_offset + 1);
END
$$;
COMMENT ON FUNCTION pqs.__check_pruning(bigint) IS 'An error for an offset to which nothing can be pruned; else a warning that nothing is.';

CREATE OR REPLACE FUNCTION pqs.prune_archived_to_offset(max_pruned_offset bigint)
RETURNS TABLE (pruning_boundary_offset bigint, deleted_contracts integer, deleted_exercises integer, deleted_events integer, deleted_transactions integer)
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pqs.__check_pruning(max_pruned_offset);
    RETURN QUERY SELECT NULL::bigint, 0, 0, 0, 0;
END
$$;
COMMENT ON FUNCTION pqs.prune_archived_to_offset(bigint) IS 'Checks the offset, warns that nothing is pruned, and says so.';

CREATE OR REPLACE FUNCTION pqs.prune_archived_to_offset_dry_run(max_pruned_offset bigint)
RETURNS TABLE (pruning_boundary_offset bigint, deleted_contracts integer, deleted_exercises integer, deleted_events integer, deleted_transactions integer)
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC SELECT * FROM pqs.prune_archived_to_offset(max_pruned_offset); END;
COMMENT ON FUNCTION pqs.prune_archived_to_offset_dry_run(bigint) IS 'As prune_archived_to_offset.';

CREATE OR REPLACE FUNCTION pqs.prune_to_offset(min_offset bigint) RETURNS TABLE (squash_inclusive bigint, new_oldest bigint, affected_transactions integer)
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pqs.__check_pruning(min_offset);
    RETURN QUERY SELECT NULL::bigint, pqs.oldest_offset(), 0;
END
$$;
COMMENT ON FUNCTION pqs.prune_to_offset(bigint) IS 'Checks the offset, warns that nothing is pruned, and says so.';

CREATE OR REPLACE FUNCTION pqs.validate_pruning_offset(min_offset bigint) RETURNS TABLE (squash_inclusive bigint, new_oldest bigint, affected_transactions integer)
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC SELECT * FROM pqs.prune_to_offset(min_offset); END;
COMMENT ON FUNCTION pqs.validate_pruning_offset(bigint) IS 'As prune_to_offset.';

CREATE OR REPLACE FUNCTION pqs.validate_reset_offset(max_offset bigint) RETURNS TABLE (new_latest bigint, affected_transactions integer)
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    IF ledger.latest_offset() IS NULL OR max_offset < ledger.oldest_offset() THEN
        RAISE EXCEPTION 'Illegal reset offset % is outside lower bounds of contiguous history', max_offset;
    ELSIF max_offset > ledger.latest_offset() THEN
        RAISE EXCEPTION 'Illegal reset offset % is beyond upper bounds of contiguous history', max_offset;
    END IF;
    RETURN QUERY SELECT max_offset, (SELECT count(*)::integer FROM pqs.__transactions t WHERE t."offset" > max_offset);
END
$$;
COMMENT ON FUNCTION pqs.validate_reset_offset(bigint) IS 'How many transactions a reset to an offset would remove. An error for an offset that the database does not have.';

CREATE OR REPLACE FUNCTION pqs.reset_to_offset(max_offset bigint) RETURNS TABLE (new_latest bigint, affected_transactions integer)
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pqs.validate_reset_offset(max_offset);
    RAISE EXCEPTION 'a database is not reset by SQL'
        USING ERRCODE = 'feature_not_supported', HINT = format('indexer reset --to-offset %s says what would go; stop the indexer, and add --apply', max_offset);
END
$$;
COMMENT ON FUNCTION pqs.reset_to_offset(bigint) IS 'An error that says how a database is reset.';

CREATE OR REPLACE FUNCTION pqs.redact_contract(contract_id text, redaction_id text) RETURNS integer
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM ledger.active_contracts a WHERE a.contract_id = redact_contract.contract_id) THEN
        RAISE EXCEPTION 'Cannot redact contract % because it is active', contract_id;
    ELSIF NOT EXISTS (SELECT FROM pqs.__creations c WHERE c.contract_id = redact_contract.contract_id AND c.created_offset <= ledger.latest_offset()) THEN
        RAISE EXCEPTION 'Cannot find contract %', contract_id;
    ELSIF EXISTS (SELECT FROM ledger.redactions r WHERE r.kind = 'contract' AND r.id = redact_contract.contract_id) THEN
        RAISE EXCEPTION 'Cannot redact contract % because it is already redacted', contract_id;
    END IF;
    RAISE EXCEPTION 'contract % was not redacted: that is not done by SQL', contract_id
        USING ERRCODE = 'feature_not_supported', HINT = 'Run: indexer redact --contract ID --reason TEXT';
END
$$;
COMMENT ON FUNCTION pqs.redact_contract(text, text) IS 'An error that says how content is redacted.';

CREATE OR REPLACE FUNCTION pqs.redact_exercise(event_id pqs.event_id, redaction_id text) RETURNS void
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM ledger.exercised_events e
        WHERE e.ledger_offset = (redact_exercise.event_id)."offset" AND e.node_id = (redact_exercise.event_id).node_id AND e.ledger_offset <= ledger.latest_offset()
    ) THEN
        RAISE EXCEPTION 'Cannot find exercise with event ID %', event_id;
    ELSIF EXISTS (SELECT FROM pqs.__all_exercises e
                  WHERE e.exercised_at_offset = (redact_exercise.event_id)."offset" AND e.exercise_event_id = redact_exercise.event_id AND e.redaction_id IS NOT NULL) THEN
        RAISE EXCEPTION 'Cannot redact exercise with event ID % because it is already redacted', event_id;
    END IF;
    RAISE EXCEPTION 'exercise with event ID % was not redacted: that is not done by SQL', event_id
        USING ERRCODE = 'feature_not_supported', HINT = 'Run: indexer redact --update ID --reason TEXT, or --contract ID';
END
$$;
COMMENT ON FUNCTION pqs.redact_exercise(pqs.event_id, text) IS 'An error that says how content is redacted.';

CREATE OR REPLACE FUNCTION pqs.__index_command(qname text, expression text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    template text := (pqs.__contract_type(qname)).template_fqn;
    path     text := (SELECT string_agg(m[1], '.') FROM regexp_matches(left(expression, 10000), '->>?[[:space:]]*''([A-Za-z0-9_$]+)''', 'g') m);
BEGIN
    -- People paste it into a shell, where nothing between such quotes means anything.
    RETURN format('indexer index create ''%s'' ''%s''', translate(template, '''', ''), coalesce(path, 'FIELD'));
END
$$;
COMMENT ON FUNCTION pqs.__index_command(text, text) IS 'The command that makes an index of the field in an expression. FIELD: the expression names none.';

CREATE OR REPLACE FUNCTION pqs.print_create_index_for_contract(
    name text, qname text, expression text, index_type text, index_opclass text DEFAULT '', use_concurrently boolean DEFAULT true
) RETURNS text LANGUAGE sql STABLE
RETURN '-- in a shell: ' || pqs.__index_command(qname, expression);
COMMENT ON FUNCTION pqs.print_create_index_for_contract(text, text, text, text, text, boolean) IS 'A comment of SQL: the command that makes the index.';

CREATE OR REPLACE PROCEDURE pqs.create_index_for_contract(name text, qname text, expression text, index_type text, index_opclass text DEFAULT '')
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    command text := pqs.__index_command(qname, expression);
BEGIN
    RAISE WARNING 'no index is made: a procedure can''t build one while the indexer writes'
        USING HINT = format('In a shell this makes it: %s. A text is then found by its expression, a number or a time through a typed view.', command);
END
$$;
COMMENT ON PROCEDURE pqs.create_index_for_contract(text, text, text, text, text) IS 'Checks the name, and warns that no index is made; the hint has the command that makes it.';
