/**
 * A set like ClickBench: one wide table of page views, skewed as such are, and its 43 queries over it. Where a query of
 * ClickBench leaves ties open, one order more settles them, so that two engines can be compared. Data from DuckDB's `range` and
 * `hash`, so that every machine has the same rows.
 */

const MACROS = [
  "CREATE MACRO pick(i, salt, n) AS (hash(i::BIGINT * 64 + salt) % n::UBIGINT)::BIGINT",
  // Few values are common, and many rare: the logarithm of it is even.
  "CREATE MACRO skewed(i, salt, n) AS floor(pow(n, pick(i, salt, 1000000) / 1000000.0))::BIGINT - 1",
];

export function clicks(rows) {
  const hits = `SELECT
      (hash(range * 3) // 2)::BIGINT AS WatchID, pick(range, 1, 2)::SMALLINT AS JavaEnable,
      CASE WHEN pick(range, 2, 10) = 0 THEN '' ELSE 'Page ' || skewed(range, 3, 100000)
        || CASE WHEN pick(range, 4, 200) = 0 THEN ' - Google' ELSE ' of the catalogue' END END AS Title,
      1::SMALLINT AS GoodEvent,
      TIMESTAMP '2013-07-01' + to_seconds(pick(range, 5, 2678400)) AS EventTime,
      (TIMESTAMP '2013-07-01' + to_seconds(pick(range, 5, 2678400)))::DATE AS EventDate,
      CASE WHEN pick(range, 6, 100) < 2 THEN 62 ELSE skewed(range, 7, 6000) END::INTEGER AS CounterID,
      pick(skewed(range, 8, ${Math.max(10, Math.round(rows / 5))}), 9, 4294967296) AS ClientIP,
      skewed(range, 10, 9000)::INTEGER AS RegionID,
      (hash(skewed(range, 8, ${Math.max(10, Math.round(rows / 5))})) // 2)::BIGINT AS UserID,
      'http://' || CASE WHEN pick(range, 11, 500) = 0 THEN 'google' ELSE 'shop' || skewed(range, 12, 3000) END
        || '.example/' || skewed(range, 13, 50000) || '?q=' || pick(range, 14, 40) AS URL,
      CASE WHEN pick(range, 15, 5) = 0 THEN '' ELSE 'http' || CASE WHEN pick(range, 16, 2) = 0 THEN 's' ELSE '' END
        || '://www.site' || skewed(range, 17, 4000) || '.example/from/' || skewed(range, 18, 9000) END AS Referer,
      (pick(range, 19, 10) = 0)::SMALLINT AS IsRefresh, (800 + 16 * pick(range, 20, 80))::SMALLINT AS ResolutionWidth,
      CASE WHEN pick(range, 21, 40) = 0 THEN 1 + pick(range, 22, 20) ELSE 0 END::SMALLINT AS AdvEngineID,
      CASE WHEN pick(range, 23, 8) = 0 THEN 1 + skewed(range, 24, 30) ELSE 0 END::SMALLINT AS SearchEngineID,
      CASE WHEN pick(range, 23, 8) = 0 THEN 'how to ' || skewed(range, 25, 30000) ELSE '' END AS SearchPhrase,
      CASE WHEN pick(range, 26, 20) = 0 THEN pick(range, 27, 90) ELSE 0 END::SMALLINT AS MobilePhone,
      CASE WHEN pick(range, 26, 20) = 0 THEN 'model ' || skewed(range, 28, 160) ELSE '' END AS MobilePhoneModel,
      (pick(range, 29, 8) - 1)::SMALLINT AS TraficSourceID, (pick(range, 30, 20) = 0)::SMALLINT AS IsLink,
      (pick(range, 31, 100) = 0)::SMALLINT AS IsDownload, (pick(range, 32, 50) = 0)::SMALLINT AS DontCountHits,
      (300 + 10 * pick(range, 33, 160))::SMALLINT AS WindowClientWidth,
      (300 + 10 * pick(range, 34, 90))::SMALLINT AS WindowClientHeight,
      pick(skewed(range, 13, 50000), 35, 9000000000000) AS URLHash,
      pick(skewed(range, 18, 9000), 36, 9000000000000) AS RefererHash
    FROM range(${rows})`;
  return {
    name: "ClickBench-like",
    setup: MACROS,
    tables: { hits },
    // What CounterID 62 and a common hash stand for in the original.
    queries: QUERIES.map((query) => (typeof query === "string" ? { sql: query } : query)),
  };
}

const JULY = "CounterID = 62 AND EventDate >= DATE '2013-07-01' AND EventDate <= DATE '2013-07-31'";
const COMMON = "(SELECT mode(URLHash) FROM hits)";

const QUERIES = [
  "SELECT count(*) FROM hits",
  "SELECT count(*) FROM hits WHERE AdvEngineID <> 0",
  "SELECT sum(AdvEngineID), count(*), avg(ResolutionWidth) FROM hits",
  "SELECT avg(UserID) FROM hits",
  "SELECT count(DISTINCT UserID) FROM hits",
  "SELECT count(DISTINCT SearchPhrase) FROM hits",
  "SELECT min(EventDate), max(EventDate) FROM hits",
  "SELECT AdvEngineID, count(*) AS c FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY c DESC, AdvEngineID",
  "SELECT RegionID, count(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10",
  `SELECT RegionID, sum(AdvEngineID), count(*) AS c, avg(ResolutionWidth), count(DISTINCT UserID) FROM hits
    GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10`,
  `SELECT MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' GROUP BY MobilePhoneModel
    ORDER BY u DESC, MobilePhoneModel LIMIT 10`,
  `SELECT MobilePhone, MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
    GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC, MobilePhone, MobilePhoneModel LIMIT 10`,
  `SELECT SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase
    ORDER BY c DESC, SearchPhrase LIMIT 10`,
  `SELECT SearchPhrase, count(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase
    ORDER BY u DESC, SearchPhrase LIMIT 10`,
  `SELECT SearchEngineID, SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> ''
    GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC, SearchEngineID, SearchPhrase LIMIT 10`,
  "SELECT UserID, count(*) AS c FROM hits GROUP BY UserID ORDER BY c DESC, UserID LIMIT 10",
  `SELECT UserID, SearchPhrase, count(*) AS c FROM hits GROUP BY UserID, SearchPhrase
    ORDER BY c DESC, UserID, SearchPhrase LIMIT 10`,
  { sql: "SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10", anyRows: true },
  `SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, count(*) AS c FROM hits
    GROUP BY UserID, m, SearchPhrase ORDER BY c DESC, UserID, m, SearchPhrase LIMIT 10`,
  "SELECT UserID FROM hits WHERE UserID = (SELECT mode(UserID) FROM hits)",
  "SELECT count(*) FROM hits WHERE URL LIKE '%google%'",
  `SELECT SearchPhrase, min(URL), count(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''
    GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10`,
  `SELECT SearchPhrase, min(URL), min(Title), count(*) AS c, count(DISTINCT UserID) FROM hits
    WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> ''
    GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10`,
  "SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime, WatchID LIMIT 10",
  "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, WatchID LIMIT 10",
  "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10",
  "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10",
  `SELECT CounterID, avg(length(URL)) AS l, count(*) AS c FROM hits WHERE URL <> '' GROUP BY CounterID
    HAVING count(*) > 1000 ORDER BY l DESC, CounterID LIMIT 25`,
  `SELECT regexp_replace(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS k, avg(length(Referer)) AS l,
    count(*) AS c, min(Referer) FROM hits WHERE Referer <> '' GROUP BY k HAVING count(*) > 1000
    ORDER BY l DESC, k LIMIT 25`,
  `SELECT ${Array.from({ length: 90 }, (_, i) => `sum(ResolutionWidth + ${i})`).join(", ")} FROM hits`,
  `SELECT SearchEngineID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits
    WHERE SearchPhrase <> '' GROUP BY SearchEngineID, ClientIP ORDER BY c DESC, SearchEngineID, ClientIP LIMIT 10`,
  `SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits WHERE SearchPhrase <> ''
    GROUP BY WatchID, ClientIP ORDER BY c DESC, WatchID, ClientIP LIMIT 10`,
  `SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits
    GROUP BY WatchID, ClientIP ORDER BY c DESC, WatchID, ClientIP LIMIT 10`,
  "SELECT URL, count(*) AS c FROM hits GROUP BY URL ORDER BY c DESC, URL LIMIT 10",
  "SELECT 1, URL, count(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC, URL LIMIT 10",
  `SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, count(*) AS c FROM hits
    GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC, ClientIP LIMIT 10`,
  `SELECT URL, count(*) AS PageViews FROM hits WHERE ${JULY} AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> ''
    GROUP BY URL ORDER BY PageViews DESC, URL LIMIT 10`,
  `SELECT Title, count(*) AS PageViews FROM hits WHERE ${JULY} AND DontCountHits = 0 AND IsRefresh = 0 AND Title <> ''
    GROUP BY Title ORDER BY PageViews DESC, Title LIMIT 10`,
  `SELECT URL, count(*) AS PageViews FROM hits WHERE ${JULY} AND IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0
    GROUP BY URL ORDER BY PageViews DESC, URL LIMIT 10 OFFSET 100`,
  `SELECT TraficSourceID, SearchEngineID, AdvEngineID,
      CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS Src, URL AS Dst,
      count(*) AS PageViews
    FROM hits WHERE ${JULY} AND IsRefresh = 0 GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst
    ORDER BY PageViews DESC, TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst LIMIT 10 OFFSET 100`,
  `SELECT URLHash, EventDate, count(*) AS PageViews FROM hits WHERE ${JULY} AND IsRefresh = 0
    AND TraficSourceID IN (-1, 6) AND RefererHash = (SELECT mode(RefererHash) FROM hits)
    GROUP BY URLHash, EventDate ORDER BY PageViews DESC, URLHash, EventDate LIMIT 10 OFFSET 10`,
  `SELECT WindowClientWidth, WindowClientHeight, count(*) AS PageViews FROM hits WHERE ${JULY} AND IsRefresh = 0
    AND DontCountHits = 0 AND URLHash = ${COMMON}
    GROUP BY WindowClientWidth, WindowClientHeight
    ORDER BY PageViews DESC, WindowClientWidth, WindowClientHeight LIMIT 10 OFFSET 10`,
  `SELECT date_trunc('minute', EventTime) AS M, count(*) AS PageViews FROM hits
    WHERE CounterID = 62 AND EventDate >= DATE '2013-07-14' AND EventDate <= DATE '2013-07-15'
    AND IsRefresh = 0 AND DontCountHits = 0 GROUP BY M ORDER BY M LIMIT 10 OFFSET 10`,
];
