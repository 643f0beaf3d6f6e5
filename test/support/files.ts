/** Options of a lake in which every append makes data files, however few its rows are. */
export const FILES = { inlineBytes: 0 } as const;
