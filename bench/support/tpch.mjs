/**
 * A set like TPC-H: its schema, its 22 queries with their validation parameters, and data of the same keys, domains and
 * selectivities from DuckDB's `range` and `hash`, so that every machine has the same rows. Not TPC-H: nothing here may be
 * called a result of it.
 */

const COLORS = `['almond','azure','beige','black','blue','brown','coral','cream','cyan','forest','frosted','gold','green',
  'grey','honey','indigo','ivory','khaki','lemon','linen','maroon','mint','navy','olive','orange','peach','pink','plum',
  'purple','red','rose','salmon','sienna','sky','snow','steel','tan','thistle','tomato','violet','wheat','white','yellow']`;
const WORDS = `['blithely','bold','carefully','deposits','even','express','final','foxes','furiously','ideas','ironic',
  'packages','pending','pinto beans','quickly','regular','requests','silent','slyly','special','theodolites','unusual']`;
const NATIONS = `[('ALGERIA',0),('ARGENTINA',1),('BRAZIL',1),('CANADA',1),('EGYPT',4),('ETHIOPIA',0),('FRANCE',3),
  ('GERMANY',3),('INDIA',2),('INDONESIA',2),('IRAN',4),('IRAQ',4),('JAPAN',2),('JORDAN',4),('KENYA',0),('MOROCCO',0),
  ('MOZAMBIQUE',0),('PERU',1),('CHINA',2),('ROMANIA',3),('SAUDI ARABIA',4),('VIETNAM',2),('RUSSIA',3),
  ('UNITED KINGDOM',3),('UNITED STATES',1)]`;

/** `pick(i, salt, n)`: 0 to n − 1, the same for the same i and salt. */
const MACROS = [
  "CREATE MACRO pick(i, salt, n) AS (hash(i::BIGINT * 64 + salt) % n::UBIGINT)::BIGINT",
  `CREATE MACRO word(words, i, salt) AS words[pick(i, salt, len(words)) + 1]`,
  `CREATE MACRO comment(i) AS word(${WORDS}, i, 40) || ' ' || word(${WORDS}, i, 41) || ' ' || word(${WORDS}, i, 42)
    || ' ' || word(${WORDS}, i, 43) || ' ' || word(${WORDS}, i, 44)`,
  "CREATE MACRO money(cents) AS (cents::DECIMAL(15, 2) / 100)::DECIMAL(15, 2)",
  "CREATE MACRO phone(nation, i) AS (nation + 10) || '-' || (100 + pick(i, 50, 900)) || '-' || (1000 + pick(i, 51, 9000))",
  "CREATE MACRO price(part) AS 90000 + (part // 10) % 20001 + 100 * (part % 1000)",
];

/** @param lineitems about how many rows the largest table has; a scale of 1 is 6 million */
export function tpch(lineitems) {
  const scale = lineitems / 6_000_000;
  const count = (atOne) => Math.max(20, Math.round(scale * atOne));
  const [suppliers, customers, parts, orders] = [10_000, 150_000, 200_000, 1_500_000].map(count);
  const supplierOf = (part, i) =>
    `(${part} + ${i} * (${Math.ceil(suppliers / 4)} + (${part} - 1) // ${suppliers})) % ${suppliers} + 1`;
  const order = `SELECT range + 1 AS o_orderkey, 3 * pick(range, 1, ${Math.floor(customers / 3)}) + 1 + pick(range, 2, 2)
      AS o_custkey, DATE '1992-01-01' + pick(range, 3, 2406)::INTEGER AS o_orderdate, 1 + pick(range, 4, 7) AS lines
    FROM range(${orders})`;
  return {
    name: "TPC-H-like",
    setup: MACROS,
    tables: {
      region: `SELECT unnest(range(5))::INTEGER AS r_regionkey,
        unnest(['AFRICA','AMERICA','ASIA','EUROPE','MIDDLE EAST']) AS r_name`,
      nation: `SELECT range::INTEGER AS n_nationkey, (${NATIONS}[range + 1])[1] AS n_name,
        (${NATIONS}[range + 1])[2]::INTEGER AS n_regionkey FROM range(25)`,
      supplier: `SELECT i AS s_suppkey, 'Supplier#' || lpad(i::VARCHAR, 9, '0') AS s_name, comment(i + 7) AS s_address,
          nation::INTEGER AS s_nationkey, phone(nation, i) AS s_phone, money(pick(i, 2, 1100000) - 100000) AS s_acctbal,
          CASE WHEN pick(i, 3, 500) = 0 THEN 'the Customer wrote Complaints ' ELSE '' END || comment(i) AS s_comment
        FROM (SELECT range + 1 AS i, pick(range, 1, 25) AS nation FROM range(${suppliers}))`,
      customer: `SELECT i AS c_custkey, 'Customer#' || lpad(i::VARCHAR, 9, '0') AS c_name, comment(i + 9) AS c_address,
          nation::INTEGER AS c_nationkey, phone(nation, i) AS c_phone, money(pick(i, 2, 1100000) - 100000) AS c_acctbal,
          word(['AUTOMOBILE','BUILDING','FURNITURE','MACHINERY','HOUSEHOLD'], i, 3) AS c_mktsegment,
          comment(i) AS c_comment
        FROM (SELECT range + 1 AS i, pick(range, 1, 25) AS nation FROM range(${customers}))`,
      part: `SELECT i AS p_partkey, word(${COLORS}, i, 1) || ' ' || word(${COLORS}, i, 2) || ' ' || word(${COLORS}, i, 3)
          || ' ' || word(${COLORS}, i, 4) || ' ' || word(${COLORS}, i, 5) AS p_name,
          'Manufacturer#' || maker AS p_mfgr, 'Brand#' || maker || (1 + pick(i, 7, 5)) AS p_brand,
          word(['STANDARD','SMALL','MEDIUM','LARGE','ECONOMY','PROMO'], i, 8) || ' '
          || word(['ANODIZED','BURNISHED','PLATED','POLISHED','BRUSHED'], i, 9) || ' '
          || word(['TIN','NICKEL','BRASS','STEEL','COPPER'], i, 10) AS p_type,
          (1 + pick(i, 11, 50))::INTEGER AS p_size,
          word(['SM','LG','MED','JUMBO','WRAP'], i, 12) || ' '
          || word(['CASE','BOX','BAG','JAR','PKG','PACK','CAN','DRUM'], i, 13) AS p_container,
          money(price(i)) AS p_retailprice
        FROM (SELECT range + 1 AS i, 1 + pick(range, 6, 5) AS maker FROM range(${parts}))`,
      partsupp: `SELECT p AS ps_partkey, ${supplierOf("p", "i")} AS ps_suppkey,
          (1 + pick(4 * p + i, 1, 9999))::INTEGER AS ps_availqty, money(100 + pick(4 * p + i, 2, 99901)) AS ps_supplycost
        FROM (SELECT range + 1 AS p, unnest([0, 1, 2, 3]) AS i FROM range(${parts}))`,
      orders: `SELECT o_orderkey, o_custkey,
          CASE WHEN o_orderdate < DATE '1995-03-01' THEN 'F' WHEN o_orderdate > DATE '1995-06-17' THEN 'O' ELSE 'P' END
            AS o_orderstatus,
          money(100000 + pick(o_orderkey, 5, 40000000)) AS o_totalprice, o_orderdate,
          word(['1-URGENT','2-HIGH','3-MEDIUM','4-NOT SPECIFIED','5-LOW'], o_orderkey, 6) AS o_orderpriority,
          'Clerk#' || lpad((1 + pick(o_orderkey, 7, ${Math.max(1, Math.round(1000 * scale))}))::VARCHAR, 9, '0') AS o_clerk,
          0 AS o_shippriority, comment(o_orderkey) AS o_comment
        FROM (${order})`,
      lineitem: `SELECT o_orderkey AS l_orderkey, l_partkey, ${supplierOf("l_partkey", "pick(key, 2, 4)")} AS l_suppkey,
          l_linenumber::INTEGER AS l_linenumber, quantity::DECIMAL(15, 2) AS l_quantity,
          money(quantity * price(l_partkey)) AS l_extendedprice, money(pick(key, 4, 11)) AS l_discount,
          money(pick(key, 5, 9)) AS l_tax,
          CASE WHEN receipt > DATE '1995-06-17' THEN 'N' WHEN pick(key, 6, 2) = 0 THEN 'R' ELSE 'A' END AS l_returnflag,
          CASE WHEN ship > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus, ship AS l_shipdate,
          o_orderdate + (30 + pick(key, 7, 61))::INTEGER AS l_commitdate, receipt AS l_receiptdate,
          word(['DELIVER IN PERSON','COLLECT COD','NONE','TAKE BACK RETURN'], key, 8) AS l_shipinstruct,
          word(['REG AIR','AIR','RAIL','SHIP','TRUCK','MAIL','FOB'], key, 9) AS l_shipmode, comment(key) AS l_comment
        FROM (SELECT *, ship + (1 + pick(key, 10, 30))::INTEGER AS receipt
          FROM (SELECT *, 1 + pick(key, 1, ${parts}) AS l_partkey, 1 + pick(key, 3, 50) AS quantity,
              o_orderdate + (1 + pick(key, 11, 121))::INTEGER AS ship
            FROM (SELECT *, 8 * o_orderkey + l_linenumber AS key
              FROM (SELECT *, unnest(range(1, lines + 1)) AS l_linenumber FROM (${order})))))`,
    },
    queries: QUERIES.map((sql) => ({ sql: sql.replace("$fraction", (0.0001 / scale).toFixed(10)) })),
  };
}

const QUERIES = [
  `SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
    avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
  FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY
  GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus`,
  `SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
  FROM part, supplier, partsupp, nation, region
  WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
    AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
    AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
      WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
        AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
  ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100`,
  `SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
  FROM customer, orders, lineitem
  WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
    AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
  GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10`,
  `SELECT o_orderpriority, count(*) AS order_count FROM orders
  WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL 3 MONTH
    AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
  GROUP BY o_orderpriority ORDER BY o_orderpriority`,
  `SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
  FROM customer, orders, lineitem, supplier, nation, region
  WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
    AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
    AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL 1 YEAR
  GROUP BY n_name ORDER BY revenue DESC`,
  `SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
  WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR
    AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24`,
  `SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
  FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
      l_extendedprice * (1 - l_discount) AS volume
    FROM supplier, lineitem, orders, customer, nation n1, nation n2
    WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
      AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
        OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
      AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
  GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year`,
  `SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
  FROM (SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume,
      n2.n_name AS nation
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
      AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
      AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
      AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
  GROUP BY o_year ORDER BY o_year`,
  `SELECT nation, o_year, sum(amount) AS sum_profit
  FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
      l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
      AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
  GROUP BY nation, o_year ORDER BY nation, o_year DESC`,
  `SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone,
    c_comment
  FROM customer, orders, lineitem, nation
  WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
    AND o_orderdate < DATE '1993-10-01' + INTERVAL 3 MONTH AND l_returnflag = 'R' AND c_nationkey = n_nationkey
  GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
  ORDER BY revenue DESC, c_custkey LIMIT 20`,
  `SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
  WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
  GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) >
    (SELECT sum(ps_supplycost * ps_availqty) * $fraction FROM partsupp, supplier, nation
      WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
  ORDER BY value DESC, ps_partkey`,
  `SELECT l_shipmode,
    sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
    sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
  FROM orders, lineitem
  WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
    AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
    AND l_receiptdate < DATE '1994-01-01' + INTERVAL 1 YEAR
  GROUP BY l_shipmode ORDER BY l_shipmode`,
  `SELECT c_count, count(*) AS custdist
  FROM (SELECT c_custkey, count(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN orders
      ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders
  GROUP BY c_count ORDER BY custdist DESC, c_count DESC`,
  `SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
    / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
  FROM lineitem, part
  WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL 1 MONTH`,
  `WITH revenue AS (SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL 3 MONTH
    GROUP BY l_suppkey)
  SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
  WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey`,
  `SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
  WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
    AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
    AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
  GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size`,
  `SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
  WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
    AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)`,
  `SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
  FROM customer, orders, lineitem
  WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
    AND c_custkey = o_custkey AND o_orderkey = l_orderkey
  GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
  ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100`,
  `SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
  WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
    (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity BETWEEN 1 AND 11
      AND p_size BETWEEN 1 AND 5)
    OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
      AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
    OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
      AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))`,
  `SELECT s_name, s_address FROM supplier, nation
  WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
      WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
        AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey
          AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01'
          AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR))
    AND s_nationkey = n_nationkey AND n_name = 'CANADA' ORDER BY s_name`,
  `SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
  WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
    AND l1.l_receiptdate > l1.l_commitdate
    AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
    AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
      AND l3.l_receiptdate > l3.l_commitdate)
    AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
  GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100`,
  `SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
  FROM (SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer
    WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
      AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00
        AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
      AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
  GROUP BY cntrycode ORDER BY cntrycode`,
];
