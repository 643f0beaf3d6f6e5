/** Five questions to the demo's tables. */

export interface Question {
  readonly title: string;
  readonly sql: string;
}

export const questions: readonly Question[] = [
  {
    title: "Where did flights wait longest in June 2001?",
    sql: `
      SELECT origin, count(*) AS flights, round(avg(delay), 1) AS avg_delay_min,
             round(100 * avg((delay > 30)::int), 1) AS pct_over_30_min
      FROM flights
      WHERE date >= TIMESTAMP '2001-06-01' AND date < TIMESTAMP '2001-07-01'
      GROUP BY origin HAVING count(*) > 5000
      ORDER BY avg_delay_min DESC LIMIT 8`,
  },
  {
    title: "Does a sample of 200,000 flights agree with all three million? (Parquet joined with JSON)",
    sql: `
      WITH every AS (SELECT hour(date) // 3 * 3 AS from_hour, count(*) AS flights, avg(delay) AS delay
                     FROM flights GROUP BY ALL),
           sample AS (SELECT floor(time)::bigint // 3 * 3 AS from_hour, count(*) AS sampled, avg(delay) AS delay
                      FROM flights_sample GROUP BY ALL)
      SELECT from_hour, flights, sampled, round(every.delay, 1) AS avg_delay_min,
             round(sample.delay, 1) AS sample_avg_min, trim(bar(greatest(every.delay, 0), 0, 45, 18)) AS delay
      FROM every JOIN sample USING (from_hour) ORDER BY from_hour`,
  },
  {
    title: "Which birds cost airlines most? (CSV)",
    sql: `
      SELECT "Wildlife Species" AS species, count(*) AS strikes, sum("Cost Total $") AS dollars,
             mode("Phase of flight") AS mostly_during
      FROM birdstrikes GROUP BY ALL ORDER BY dollars DESC LIMIT 8`,
  },
  {
    title: "Which genre earns its budget back most often? (JSON, with gaps)",
    sql: `
      SELECT "Major Genre" AS genre, count(*) AS films,
             round(100 * avg(("Worldwide Gross" > 2 * "Production Budget")::int)) AS pct_doubled,
             round(avg("IMDB Rating"), 1) AS imdb
      FROM movies WHERE "Production Budget" > 1000000 AND "Major Genre" IS NOT NULL
      GROUP BY ALL HAVING count(*) > 50 ORDER BY pct_doubled DESC`,
  },
  {
    title: "What were the week's strongest earthquakes? (nested GeoJSON)",
    sql: `
      SELECT properties.mag AS magnitude, properties.place AS place, geometry.coordinates[3] AS depth_km,
             strftime(make_timestamp(properties.time * 1000), '%Y-%m-%d %H:%M') AS utc
      FROM earthquakes WHERE properties.type = 'earthquake'
      ORDER BY magnitude DESC LIMIT 6`,
  },
];
