"""The frames that ask for an unknown host.

For IPv4 an ARP probe (RFC 5227), whose sender has no address, so that no host notes one for us; for IPv6 a
neighbour solicitation from a link-local address, as one without a sender would mean that a host is about
to take the address. Answers come to a hardware address that is ours alone.
"""

import ipaddress

from os_ken.lib.packet import arp, ethernet, icmpv6, in_proto, ipv6, packet
from os_ken.lib.packet.ether_types import ETH_TYPE_ARP, ETH_TYPE_IPV6

OUR_HARDWARE = "0e:6d:70:78:00:01"  # locally administered, of one interface
OUR_ADDRESS = "fe80::c6d:70ff:fe78:1"  # link-local, made from it
TO_ALL = "ff:ff:ff:ff:ff:ff"
HOPS = 255  # of neighbour discovery: what has come from farther away is refused


def host_question(address: str) -> bytes:
    """Return the frame that asks for the host with an address; raises ValueError for what is no address."""
    asked = ipaddress.ip_address(address)
    made = packet.Packet()
    if asked.version == 4:
        made.add_protocol(ethernet.ethernet(TO_ALL, OUR_HARDWARE, ETH_TYPE_ARP))
        made.add_protocol(
            arp.arp(opcode=arp.ARP_REQUEST, src_mac=OUR_HARDWARE, src_ip="0.0.0.0", dst_ip=address)
        )
    else:
        last = asked.packed[-3:]
        group = ipaddress.ip_address(ipaddress.ip_address("ff02::1:ff00:0").packed[:-3] + last)
        to = "33:33:ff:" + last.hex(":")
        made.add_protocol(ethernet.ethernet(to, OUR_HARDWARE, ETH_TYPE_IPV6))
        made.add_protocol(
            ipv6.ipv6(src=OUR_ADDRESS, dst=str(group), nxt=in_proto.IPPROTO_ICMPV6, hop_limit=HOPS)
        )
        sender = icmpv6.nd_option_sla(hw_src=OUR_HARDWARE)
        made.add_protocol(
            icmpv6.icmpv6(icmpv6.ND_NEIGHBOR_SOLICIT, data=icmpv6.nd_neighbor(dst=address, option=sender))
        )
    made.serialize()
    return bytes(made.data)
