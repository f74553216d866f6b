-- name: TemplateInterfaceList :many
SELECT template_ref, interface_id FROM template_interfaces;

-- name: TemplateInterfaceInsert :exec
-- Notes that a template, which has its number, has shown a view of an interface.
INSERT INTO template_interfaces (template_ref, interface_id)
SELECT t.template_ref, @interface_id
FROM templates t
WHERE t.template_id = @template_id AND t.package_name = @package_name
  AND t.representative_package_id IS NOT DISTINCT FROM sqlc.narg('representative_package_id')
ON CONFLICT DO NOTHING;
