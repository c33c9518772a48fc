CREATE TABLE page(key INTEGER PRIMARY KEY, seal INTEGER NOT NULL, saved_in INTEGER NOT NULL,
  url TEXT NOT NULL, page_key TEXT, end INTEGER NOT NULL, reason TEXT, cause TEXT, ended_at INTEGER NOT NULL,
  depth INTEGER NOT NULL, class INTEGER NOT NULL, embedded INTEGER NOT NULL, attempts INTEGER NOT NULL, referrer TEXT, data BLOB,
  status INTEGER, target TEXT, etag TEXT, last_modified TEXT, content BLOB, simhash INTEGER, visits INTEGER NOT NULL,
  changes INTEGER NOT NULL, since_first INTEGER, since_visit INTEGER, since_change INTEGER,
  next_visit INTEGER, own_plan INTEGER, seen_changes INTEGER, changed_over INTEGER, unchanged_over INTEGER, unanswered INTEGER);
CREATE INDEX page_saved ON page(saved_in);
CREATE INDEX page_due ON page(next_visit) WHERE next_visit IS NOT NULL;
CREATE INDEX page_failed ON page(unanswered, saved_in) WHERE unanswered IS NOT NULL;
CREATE VIEW pages AS SELECT key AS number, url, ifnull(page_key, url) AS key,
  substr(url, instr(url, '://') + 3, instr(substr(url, instr(url, '://') + 3), '/') - 1) AS host,
  CASE end WHEN 0 THEN 'done' WHEN 1 THEN 'redirected' WHEN 2 THEN 'rejected' WHEN 3 THEN 'gave_up' ELSE 'not_fetched' END AS end,
  ifnull(cause, reason) AS reason, status,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000.0, 'unixepoch') AS ended_at,
  depth, class + 3 AS class, attempts, referrer, CAST(data AS TEXT) AS data, target, etag, last_modified,
  nullif(lower(hex(content)), '') AS content_hash,
  CASE WHEN simhash IS NOT NULL THEN printf('%016x', simhash) END AS simhash, visits, changes,
  strftime('%Y-%m-%dT%H:%M:%fZ', (ended_at - since_first) / 1000.0, 'unixepoch') AS first_visit,
  strftime('%Y-%m-%dT%H:%M:%fZ', (ended_at - since_visit) / 1000.0, 'unixepoch') AS last_visit,
  strftime('%Y-%m-%dT%H:%M:%fZ', (ended_at - since_change) / 1000.0, 'unixepoch') AS last_change,
  strftime('%Y-%m-%dT%H:%M:%fZ', next_visit / 1000.0, 'unixepoch') AS next_visit FROM page;
