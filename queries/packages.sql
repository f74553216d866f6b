-- name: VettingLock :exec
-- Lets only one writer at a time compare the stored state with the current one.
LOCK TABLE vetting_states IN SHARE ROW EXCLUSIVE MODE;

-- name: VettingStateList :many
SELECT synchronizer_ref, topology_serial FROM vetting_states;

-- name: VettedPackageList :many
SELECT synchronizer_ref, package_id, valid_from, valid_until FROM vetted_packages;

-- name: PackageList :many
SELECT package_id, package_name, package_version FROM packages;

-- name: VettingStatesUpsert :exec
INSERT INTO vetting_states (synchronizer_ref, topology_serial)
SELECT unnest(@synchronizer_refs::integer[]), unnest(@topology_serials::integer[])
ON CONFLICT (synchronizer_ref) DO UPDATE SET topology_serial = excluded.topology_serial;

-- name: VettingStatesDelete :exec
DELETE FROM vetting_states WHERE synchronizer_ref = ANY (@synchronizer_refs::integer[]);

-- name: VettedPackagesUpsert :exec
INSERT INTO vetted_packages (synchronizer_ref, package_id, valid_from, valid_until)
SELECT unnest(@synchronizer_refs::integer[]), unnest(@package_ids::text[]), unnest(@valid_froms::timestamptz[]), unnest(@valid_untils::timestamptz[])
ON CONFLICT (synchronizer_ref, package_id) DO UPDATE SET valid_from = excluded.valid_from, valid_until = excluded.valid_until;

-- name: VettedPackagesDelete :exec
DELETE FROM vetted_packages v
USING (SELECT unnest(@synchronizer_refs::integer[]) AS synchronizer_ref, unnest(@package_ids::text[]) AS package_id) gone
WHERE v.synchronizer_ref = gone.synchronizer_ref AND v.package_id = gone.package_id;

-- name: VettingChangesNext :one
-- The seq that the changes of one reading share, and the time of the reading.
SELECT (coalesce(max(seq), 0) + 1)::bigint AS seq, now()::timestamptz AS seen_at FROM vetting_changes;

-- name: PackagesUpsert :exec
INSERT INTO packages (package_id, package_name, package_version)
SELECT unnest(@package_ids::text[]), unnest(@package_names::text[]), unnest(@package_versions::text[])
ON CONFLICT (package_id) DO UPDATE SET package_name = excluded.package_name, package_version = excluded.package_version;

-- name: PackagesCount :one
-- A package is known if a template id named it or it was vetted at some time.
SELECT (
        SELECT count(*) FROM (
            SELECT p.package_id FROM packages p
            UNION
            SELECT t.package_id FROM templates t WHERE t.package_id NOT LIKE '#%' -- a package name instead of an id
        ) k
    ) AS known, (SELECT count(*) FROM vetted_packages) AS vetted,
    (SELECT count(DISTINCT synchronizer_ref) FROM vetted_packages) AS synchronizers,
    (SELECT count(*) FROM vetting_changes) AS changes;
