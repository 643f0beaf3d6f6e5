/** Chooses and prints the seed of `EIDER_SEED=random`, once for all processes that run tests, and refuses what is no seed. */
export default function setup(): void {
  const given = process.env.EIDER_SEED;
  if (given === undefined) return;
  if (given === "random") process.env.EIDER_SEED = String(Math.floor(Math.random() * 2 ** 31));
  else if (!/^\d{1,10}$/.test(given)) throw new Error(`EIDER_SEED must be digits, ten at most, or "random": ${given}`);
  console.log(`EIDER_SEED=${process.env.EIDER_SEED}`);
}
