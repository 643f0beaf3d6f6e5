/** Where functions that return more than one number leave them; see each. */
export const RESULT: usize = memory.data(32, 16);

export function resultAddress(): usize {
  return RESULT;
}
