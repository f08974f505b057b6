import os, tempfile, sys, time, pytest
from pathlib import Path
from web.servers.private_network import private_network, within
from web.servers.root_server import root_server
from XRootD import client
READS = "ofs.tpc ttl 60 60 xfr 9 pgm /usr/bin/xrdcp --server"
names=["plain","a&b","a=b","a#b","50%20off","a;b","a+b","é x","a,b","a'b","a\"b","a\\b","$x","a:b","a@b","[x]","a&amp","a=b&c=d"]
def test_x():
    out=open("/work/mine/s53/nc1x/amp.out","w")
    with tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as name:
        root=Path(name); root.chmod(0o755)
        with private_network() as ns, within(ns), root_server(root/"a",READS) as a, root_server(root/"b",READS) as b:
            (a.folder/"plain").write_bytes(b"1"*1000)
            for n in names:
                (a.folder/n).write_bytes(b"1"*1000)
                for s,d in ((n,"plain"),("plain",n)):
                    t=time.monotonic()
                    p=client.CopyProcess(); p.add_job(f"{a.url}{s}",f"{b.url}{d}",force=True,thirdparty="only",inittimeout=8,tpctimeout=8)
                    st=p.prepare()
                    if st.ok: st,_=p.run()
                    ok=(b.folder/d).exists() and (b.folder/d).stat().st_size
                    print(repr(s),repr(d),st.ok,st.message,ok,round(time.monotonic()-t,1),file=out,flush=True)
                    for f in b.folder.iterdir(): f.unlink()
