// Asks for a path set and for one path of it, as assign_mpath and the driver of the thesis do, with the
// library that they were written with. Arguments: host, port, source, sink, TCP port.
#include <cstdlib>
#include <iostream>
#include <xmlrpcpp/XmlRpc.h>

using XmlRpc::XmlRpcValue;

int main(int count, char **given) {
    if (count != 6) return 2;
    XmlRpc::XmlRpcClient client(given[1], atoi(given[2]), "/RPC2");
    XmlRpcValue asked, told, stream, nothing;
    asked["src_ip"] = given[3];
    asked["dst_ip"] = given[4];
    asked["path_num"] = 0;
    if (!client.execute("AssignMultipath", asked, told) || client.isFault()) return 1;
    stream["path_set_id"] = int(told["path_set_id"]);
    stream["tcp_port_num"] = atoi(given[5]);
    if (!client.execute("MakePath", stream, nothing) || client.isFault()) return 1;
    std::cout << int(told["path_set_id"]) << " " << int(told["tcp_num"]) << " " << nothing.size() << "\n";
    return 0;
}
