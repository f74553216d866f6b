package writing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
)

// SavePackage stores a package and what it says of types, in place of what was stored of it.
func SavePackage(ctx context.Context, tx pgx.Tx, p *ledger.Package) error {
	if err := queries.PackageDrop(ctx, tx, dbsqlc.PackageDropParams{PackageID: p.ID}); err != nil {
		return err
	}
	row := dbsqlc.PackageContentUpsertParams{
		PackageID: p.ID, PackageName: p.Name, PackageVersion: p.Version, Language: p.Language, Content: p.Content,
		Needs: append([]string{}, p.Needs...),
	}
	if p.Upgrades != "" {
		row.Upgrades = &p.Upgrades
	}
	if p.Failure != "" {
		failure := rows.StorableText(p.Failure)
		row.Failure = &failure
	}
	if row.Content == nil {
		row.Content = []byte{}
	}
	if err := queries.PackageContentUpsert(ctx, tx, row); err != nil {
		return err
	}
	types := PackageRows(p)
	return CopyTables(ctx, tx, []rows.Table{
		rows.TableOf("package_definitions", types.Definitions), rows.TableOf("package_choices", types.Choices),
		rows.TableOf("package_fields", types.Fields),
	})
}

// TypeRows are the rows of what a package says of types.
type TypeRows struct {
	Definitions []dbsqlc.PackageDefinitions
	Choices     []dbsqlc.PackageChoices
	Fields      []dbsqlc.PackageFields
}

// PackageRows makes the rows of what a package says of types.
func PackageRows(p *ledger.Package) (r TypeRows) {
	for _, d := range p.Definitions {
		r.Definitions = append(r.Definitions, dbsqlc.PackageDefinitions{
			PackageID: p.ID, ModuleName: d.Module, EntityName: d.Entity, IsInterface: d.Interface, HasKey: d.Key,
			Interfaces: append([]string{}, d.Interfaces...),
		})
		for _, c := range d.Choices {
			r.Choices = append(r.Choices, dbsqlc.PackageChoices{
				PackageID: p.ID, ModuleName: d.Module, EntityName: d.Entity, Choice: c.Name, Consuming: c.Consuming,
				Argument: c.Argument, Result: c.Result,
			})
		}
		for i, f := range d.Fields {
			r.Fields = append(r.Fields, dbsqlc.PackageFields{
				PackageID: p.ID, ModuleName: d.Module, EntityName: d.Entity, Part: f.Part, Choice: f.Choice, Ordinal: int32(i),
				Path: f.Path, Type: f.Type,
			})
		}
	}
	return r
}
