-- name: PositionsMissing :many
-- The places, from 1, of positions that are not stored, or not for these stakeholders (0: not served). The arrays are parallel.
SELECT i.place::integer AS place
FROM unnest(@position_ids::uuid[]) WITH ORDINALITY i (position_id, place)
JOIN unnest(@stakeholders_refs::integer[]) WITH ORDINALITY r (stakeholders_ref, place) ON r.place = i.place
WHERE NOT EXISTS (SELECT FROM positions p WHERE p.position_id = i.position_id)
   OR r.stakeholders_ref > 0
      AND NOT EXISTS (SELECT FROM position_stakeholders p WHERE p.position_id = i.position_id AND p.stakeholders_ref = r.stakeholders_ref);
