/** What is found out once for a key, while the key is in use. The `limit` values used last are kept; failures are not. */
export function remember<K, V>(known: Map<K, Promise<V>>, key: K, limit: number, find: () => Promise<V>): Promise<V> {
  const value = known.get(key) ?? find();
  known.delete(key);
  known.set(key, value);
  value.catch(() => known.delete(key));
  for (const oldest of known.keys()) {
    if (known.size <= limit) break;
    known.delete(oldest);
  }
  return value;
}
