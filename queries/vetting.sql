-- name: VettingLock :exec
-- Lets only one writer at a time compare the stored state with the current one.
LOCK TABLE vetting_states IN SHARE ROW EXCLUSIVE MODE;

-- name: VettingStateList :many
SELECT synchronizer_ref, topology_serial FROM vetting_states;

-- name: VettingStatesReplace :exec
WITH listed AS (
    SELECT unnest(@synchronizer_refs::integer[]) AS synchronizer_ref, unnest(@topology_serials::integer[]) AS topology_serial
), gone AS (
    DELETE FROM vetting_states o WHERE NOT EXISTS (SELECT FROM listed n WHERE n.synchronizer_ref = o.synchronizer_ref)
)
INSERT INTO vetting_states AS s (synchronizer_ref, topology_serial)
SELECT n.synchronizer_ref, n.topology_serial FROM listed n
ON CONFLICT (synchronizer_ref) DO UPDATE SET topology_serial = excluded.topology_serial
WHERE s.topology_serial <> excluded.topology_serial;

-- name: PackagesName :exec
-- Keeps the last name and version that were not empty.
INSERT INTO packages AS p (package_id, package_name, package_version)
SELECT n.package_id, max(n.package_name), max(n.package_version)
FROM (
    SELECT unnest(@package_ids::text[]) AS package_id, unnest(@package_names::text[]) AS package_name, unnest(@package_versions::text[]) AS package_version
) n
GROUP BY n.package_id
ON CONFLICT (package_id) DO UPDATE
SET package_name = coalesce(nullif(excluded.package_name, ''), p.package_name),
    package_version = coalesce(nullif(excluded.package_version, ''), p.package_version)
WHERE excluded.package_name NOT IN ('', p.package_name) OR excluded.package_version NOT IN ('', p.package_version);

-- name: VettedPackagesReplace :execrows
-- Makes vetted_packages what is listed, and keeps every change. The changes of one reading share a seq.
WITH listed AS (
    SELECT unnest(@synchronizer_refs::integer[]) AS synchronizer_ref, unnest(@package_ids::text[]) AS package_id,
        unnest(@valid_froms::timestamptz[]) AS valid_from, unnest(@valid_untils::timestamptz[]) AS valid_until
), changes AS (
    SELECT coalesce(n.synchronizer_ref, o.synchronizer_ref) AS synchronizer_ref, coalesce(n.package_id, o.package_id) AS package_id,
        CASE WHEN o.package_id IS NULL THEN 'vetted' WHEN n.package_id IS NULL THEN 'unvetted' ELSE 'changed' END AS change,
        o.valid_from AS valid_from_before, o.valid_until AS valid_until_before, n.valid_from, n.valid_until
    FROM listed n
    FULL JOIN vetted_packages o ON o.synchronizer_ref = n.synchronizer_ref AND o.package_id = n.package_id
    WHERE o.package_id IS NULL OR n.package_id IS NULL OR (n.valid_from, n.valid_until) IS DISTINCT FROM (o.valid_from, o.valid_until)
), gone AS (
    DELETE FROM vetted_packages v USING changes c
    WHERE c.change = 'unvetted' AND v.synchronizer_ref = c.synchronizer_ref AND v.package_id = c.package_id
), kept AS (
    INSERT INTO vetted_packages (synchronizer_ref, package_id, valid_from, valid_until)
    SELECT c.synchronizer_ref, c.package_id, c.valid_from, c.valid_until FROM changes c WHERE c.change <> 'unvetted'
    ON CONFLICT (synchronizer_ref, package_id) DO UPDATE SET valid_from = excluded.valid_from, valid_until = excluded.valid_until
)
INSERT INTO vetting_changes (seq, synchronizer_ref, package_id, change, topology_serial, valid_from_before, valid_until_before, valid_from, valid_until)
SELECT (SELECT coalesce(max(b.seq), 0) + 1 FROM vetting_changes b), c.synchronizer_ref, c.package_id, c.change, s.topology_serial,
    c.valid_from_before, c.valid_until_before, c.valid_from, c.valid_until
FROM changes c
LEFT JOIN vetting_states s ON s.synchronizer_ref = c.synchronizer_ref;

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
