-- name: PlanByIndexOnly :exec
-- Makes the planner use indexes in the rest of the transaction, whatever its statistics: the tables are empty at first and grow by
-- millions of rows between two ANALYZEs.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true);
