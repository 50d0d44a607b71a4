import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * Who is behind an IP address: anybody on the internet; machines of one's own network, or this one; or nobody that a
 * request from outside has any business with.
 */
export type Reach = "public" | "private" | "never";

/** https://www.iana.org/assignments/iana-ipv4-special-registry, and addresses where clouds keep the secrets of a machine. */
const never = listOf([
  ...["0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"],
  ...["198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
  // The metadata of Alibaba Cloud and of Azure, and of AWS over IPv6.
  ...["100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128"],
]);

const privates = listOf([
  ...["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
  ...["::1/128", "fc00::/7"],
]);

/** Global unicast, but for what https://www.iana.org/assignments/iana-ipv6-special-registry takes out of it. */
const globals = listOf(["2000::/3"]);
const notGlobal = listOf(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]);

/** The well-known prefix of RFC 6052: an IPv4 address stands behind it, in networks that have only IPv6. */
const translated = listOf(["64:ff9b::/96"]);

/** Judges an address as `dns.lookup` or a socket writes it. What is no address at all counts as "never". */
export function reachOf(ip: string): Reach {
  if (isIPv4(ip)) return reachOfV4(ip);
  if (!isIPv6(ip) || ip.includes("%")) return "never";
  const groups = groupsOf(ip);
  // An IPv4 address in disguise: no name server has a reason to answer so.
  if (groups.startsWith("::ffff:") || never.check(ip, "ipv6")) return "never";
  if (privates.check(ip, "ipv6")) return "private";
  if (translated.check(ip, "ipv6")) return reachOfV4(lastFourBytes(groups.slice("64:ff9b::".length)));
  return globals.check(ip, "ipv6") && !notGlobal.check(ip, "ipv6") ? "public" : "never";
}

function reachOfV4(ip: string): Reach {
  if (never.check(ip)) return "never";
  return privates.check(ip) ? "private" : "public";
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
  }
  return list;
}

/** An IPv6 address in its one short form (RFC 5952). */
function groupsOf(ip: string): string {
  return new URL(`http://[${ip}]`).hostname.slice(1, -1);
}

function lastFourBytes(groups: string): string {
  const value = groups.split(":").reduce((sum, group) => sum * 65_536 + Number.parseInt(group || "0", 16), 0);
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
