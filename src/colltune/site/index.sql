-- The tables of an index; a change of them takes another VERSION (index_rows.py).
CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT UNIQUE, began_s REAL, uid INTEGER, job TEXT, hosts TEXT,
    nodes INTEGER, ppn INTEGER, samples INTEGER, compared INTEGER, colltune TEXT, command TEXT, tuned TEXT,
    confirms TEXT);
CREATE TABLE unused (name TEXT PRIMARY KEY, reason TEXT) WITHOUT ROWID;
CREATE TABLE measured (collective TEXT, nodes INTEGER, ppn INTEGER, size INTEGER, choice TEXT, date_s REAL,
    entry INTEGER, status TEXT, numbers BLOB, detail TEXT,
    PRIMARY KEY (collective, nodes, ppn, size, choice)) WITHOUT ROWID;
CREATE TABLE compared (collective TEXT, nodes INTEGER, ppn INTEGER, size INTEGER, choice TEXT, entry INTEGER,
    launch INTEGER, date_s REAL, value REAL, back_to_back REAL, mean_over_ranks REAL, late_arrivals REAL,
    untouched REAL,
    baseline TEXT);
CREATE INDEX compared_at ON compared (collective, nodes, ppn, size, choice);
CREATE TABLE changed (collective TEXT, nodes INTEGER, ppn INTEGER, entry INTEGER, date_s REAL);
