/** The configuration of the smallest Ceph that serves S3: one monitor, one object store in memory, one gateway. */

export interface CephPorts {
  /** The monitor's, for messenger versions 2 and 1. */
  readonly monitor: readonly [number, number];
  readonly gateway: number;
}

/** Debian's packages with the programs, and what each brings. */
export const CEPH_PACKAGES: readonly string[] = ["ceph-mon", "ceph-osd", "radosgw"];
export const CEPH_PROGRAMS: readonly string[] = [
  "ceph",
  "ceph-mon",
  "ceph-osd",
  "monmaptool",
  "radosgw",
  "radosgw-admin",
];

/** Where the monitor is, in Ceph's notation. */
export function monitorAddress({ monitor: [v2, v1] }: CephPorts): string {
  return `[v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]`;
}

/** `ceph.conf` for a cluster that lives in `folder` and on the loopback interface. */
export function cephConfiguration(folder: string, clusterId: string, ports: CephPorts): string {
  const modes = ["mon client", "mon cluster", "mon service", "cluster", "service", "client"];
  return `[global]
fsid = ${clusterId}
mon initial members = a
mon host = ${monitorAddress(ports)}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
# The monitor gathers proposals for a second by default: with these the cluster is up in 2 s instead of 14.
paxos propose interval = 0.02
paxos min wait = 0.01
auth cluster required = none
auth service required = none
auth client required = none
# Without keys there is no encryption to agree on, and the gateway would wait for it for ever.
${modes.map((name) => `ms ${name} mode = crc`).join("\n")}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
mon allow pool size one = true
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
mon data avail crit = 1
run dir = ${folder}
admin socket = ${folder}/$name.asok
pid file = ${folder}/$name.pid
log file = ${folder}/$name.log
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw

[client.rgw.a]
# Without tcp_nodelay a GET takes 50 ms instead of 4.
rgw frontends = beast endpoint=127.0.0.1:${ports.gateway} tcp_nodelay=1
`;
}
