"""PostgreSQL: pool, typed queries, migrations, and the bootstrap of roles and schemas."""
