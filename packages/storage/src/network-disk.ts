import { statfs } from "node:fs/promises";

/** Something about a store that works, but not as well as its user may think. */
export interface StoreWarning {
  /** Stable: `network_disk`. */
  readonly code: string;
  readonly message: string;
}

/** Linux's `f_type`: https://man7.org/linux/man-pages/man2/statfs.2.html and the headers it names. */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "SMB (CIFS)"],
  [0xfe534d42, "SMB2"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x00c36400, "Ceph"],
  [0x01021997, "9P, a folder of a virtual machine's host"],
  [0x786f4256, "a shared folder of VirtualBox"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x19830326, "BeeGFS"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
  [0x65735546, "FUSE, behind which may be a network"],
]);

/** What kind of network file system a folder is on, as far as that can be told; undefined if none is known. */
export function networkKind(path: string, type: number, platform: NodeJS.Platform): string | undefined {
  if (platform === "win32") return path.startsWith("\\\\") ? "a network share" : undefined;
  // On other systems the number means something else.
  return platform === "linux" ? NETWORK_TYPES.get(type >>> 0) : undefined;
}

/** The warning for a folder on a network file system, if it is on one. */
export async function networkWarning(path: string): Promise<StoreWarning | undefined> {
  const stats = await statfs(path).catch(() => undefined);
  const kind = networkKind(path, stats?.type ?? 0, process.platform);
  if (kind === undefined) return undefined;
  const advice =
    "A lake there is safe for one machine at a time, if locks and syncs work; for several machines use an object store.";
  return { code: "network_disk", message: `${path} is on a network file system (${kind}). ${advice}` };
}
