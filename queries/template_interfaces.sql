-- name: TemplateInterfaceList :many
SELECT template_ref, interface_id FROM template_interfaces;

-- name: TemplateInterfaceInsert :exec
-- Stores that a contract of a template had a view of an interface. The template has its number already.
INSERT INTO template_interfaces (template_ref, interface_id)
SELECT DISTINCT t.template_ref, @interface_id::text
FROM templates t
WHERE t.template_id = @template_id AND t.package_name = @package_name
  AND t.representative_package_id IS NOT DISTINCT FROM sqlc.narg('representative_package_id')
ON CONFLICT DO NOTHING;
