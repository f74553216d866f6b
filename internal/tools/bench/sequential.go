package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The baseline is the first version that one would write: sequential requests, encoding/json, an INSERT for each row, a
// transaction for each page. It keeps the active set, but stores only updates, creations and archivals, with the
// obvious columns.

const sequentialTables = `
CREATE TABLE updates (ledger_offset bigint PRIMARY KEY, update_id text, record_time timestamptz,
    effective_at timestamptz);
CREATE TABLE created (ledger_offset bigint, node_id int, contract_id text, template_id text, payload jsonb,
    signatories text[],
	observers text[], witnesses text[], created_at timestamptz, PRIMARY KEY (ledger_offset, node_id));
CREATE INDEX created_contract_id ON created (contract_id);
CREATE TABLE archived (ledger_offset bigint, node_id int, contract_id text, witnesses text[],
    PRIMARY KEY (ledger_offset, node_id));
CREATE INDEX archived_contract_id ON archived (contract_id);
CREATE TABLE active (contract_id text PRIMARY KEY, template_id text)`

// sequentialElement is an update as the baseline decodes it.
type sequentialElement struct {
	Update map[string]struct { // by its kind
		Value sequentialUpdate `json:"value"`
	} `json:"update"`
}

type sequentialUpdate struct {
	UpdateID    string    `json:"updateId"`
	Offset      int64     `json:"offset"`
	EffectiveAt time.Time `json:"effectiveAt"`
	RecordTime  time.Time `json:"recordTime"`
	Events      []struct {
		CreatedEvent *struct {
			NodeID         int32           `json:"nodeId"`
			ContractID     string          `json:"contractId"`
			TemplateID     string          `json:"templateId"`
			CreateArgument json.RawMessage `json:"createArgument"`
			Signatories    []string        `json:"signatories"`
			Observers      []string        `json:"observers"`
			WitnessParties []string        `json:"witnessParties"`
			CreatedAt      time.Time       `json:"createdAt"`
		}
		ArchivedEvent *struct {
			NodeID         int32    `json:"nodeId"`
			ContractID     string   `json:"contractId"`
			WitnessParties []string `json:"witnessParties"`
		}
	} `json:"events"`
}

// sequential reads a ledger from its beginning to an offset with the baseline, and returns how long it took.
func sequential(ctx context.Context, url, database, format string, end int64) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, sequentialTables); err != nil {
		return 0, err
	}
	began := time.Now()
	for at := int64(0); at < end; {
		page, err := sequentialPage(ctx, url, format, at, end)
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, element := range page {
				for _, u := range element.Update {
					at = u.Value.Offset
					if err := sequentialWrite(ctx, tx, &u.Value); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func sequentialPage(ctx context.Context, url, format string, after, end int64) (page []sequentialElement, err error) {
	body := fmt.Sprintf(`{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, after, end, format)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s%s?limit=%d", url, pathUpdates, listLimit),
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with %s", response.Status)
	}
	return page, json.NewDecoder(response.Body).Decode(&page)
}

func sequentialWrite(ctx context.Context, tx pgx.Tx, u *sequentialUpdate) error {
	exec := func(statement string, args ...any) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	}
	if err := exec("INSERT INTO updates VALUES ($1, $2, $3, $4)", u.Offset, u.UpdateID, u.RecordTime,
		u.EffectiveAt); err != nil {
		return err
	}
	for _, event := range u.Events {
		if e := event.CreatedEvent; e != nil {
			if err := exec("INSERT INTO created VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", u.Offset, e.NodeID, e.ContractID,
				e.TemplateID,
				e.CreateArgument, e.Signatories, e.Observers, e.WitnessParties, e.CreatedAt); err != nil {
				return err
			}
			if err := exec("INSERT INTO active VALUES ($1, $2)", e.ContractID, e.TemplateID); err != nil {
				return err
			}
		}
		if e := event.ArchivedEvent; e != nil {
			err := exec("INSERT INTO archived VALUES ($1, $2, $3, $4)", u.Offset, e.NodeID, e.ContractID, e.WitnessParties)
			if err != nil {
				return err
			}
			if err := exec("DELETE FROM active WHERE contract_id = $1", e.ContractID); err != nil {
				return err
			}
		}
	}
	return nil
}
