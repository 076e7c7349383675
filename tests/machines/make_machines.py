# SPDX-License-Identifier: Apache-2.0
"""Writes the machines of this folder: the answers of NVML (tests/fake_nvml), and the files of /proc and /sys.

python3 make_machines.py [FOLDER]
"""

import json
import pathlib
import sys

MIB_OF_GIB = 1024


def host(sockets, cores, threads_per_core, node_gib, cpu, free_share=0.8, swap_gib=0):
    """The files of a host that has one NUMA node per socket."""
    files, links = {}, {}
    cpus = sockets * cores * threads_per_core
    for number in range(cpus):
        core = number % (sockets * cores)
        socket = core // cores
        folder = f"sys/devices/system/cpu/cpu{number}/topology"
        siblings = [core + thread * sockets * cores for thread in range(threads_per_core)]
        files[f"{folder}/physical_package_id"] = f"{socket}\n"
        files[f"{folder}/core_cpus_list"] = ",".join(map(str, siblings)) + "\n"
    files["proc/cpuinfo"] = f"processor\t: 0\nmodel name\t: {cpu}\n"
    files["sys/devices/system/cpu/online"] = f"0-{cpus - 1}\n"
    for node in range(sockets):
        ranges = [
            f"{node * cores + thread * sockets * cores}-{(node + 1) * cores - 1 + thread * sockets * cores}"
            for thread in range(threads_per_core)
        ]
        total = node_gib << 20
        free = int(total * free_share)
        folder = f"sys/devices/system/node/node{node}"
        files[f"{folder}/cpulist"] = ",".join(ranges) + "\n"
        files[f"{folder}/meminfo"] = (
            f"Node {node} MemTotal: {total} kB\nNode {node} MemFree: {free} kB\nNode {node} MemUsed: {total - free} kB\n"
        )
        files[f"{folder}/distance"] = (
            " ".join("10" if other == node else "21" for other in range(sockets)) + "\n"
        )
    total = sockets * node_gib << 20
    free = int(total * free_share)
    files["proc/meminfo"] = (
        f"MemTotal: {total} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\n"
        f"SwapTotal: {swap_gib << 20} kB\nSwapFree: {swap_gib << 20} kB\n"
    )
    files["proc/stat"] = "cpu  2000 0 1000 7000 0 0 0 0 0 0\n"
    files["proc/loadavg"] = "12.50 11.00 9.75 3/2345 4321\n"
    files["proc/diskstats"] = " 259 0 nvme0n1 1000 0 204800 0 500 0 409600 0 0 0 0\n"
    files["sys/block/nvme0n1/size"] = f"{3840 * 10**9 // 512}\n"
    files["proc/net/dev"] = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
        "    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n"
        "  eth0: 1048576 10 0 0 0 0 0 0 2097152 10 0 0 0 0 0 0\n"
    )
    files["proc/self/cgroup"] = "0::/\n"
    files["sys/fs/cgroup/cgroup.controllers"] = "cpu memory\n"
    return files, links


def pci_device(files, links, address, path, node):
    """Adds a PCI device below the bridges of `path`."""
    folder = "/".join(["sys/devices", *path, address])
    files[f"{folder}/numa_node"] = f"{node}\n"
    links[f"sys/bus/pci/devices/{address}"] = "/".join(["../../../devices", *path, address])
    return folder


def nic(files, links, name, address, path, node, infiniband=True):
    folder = pci_device(files, links, address, path, node)
    kind = "infiniband" if infiniband else "net"
    links[f"sys/class/{kind}/{name}"] = f"../../../{folder}/{kind}/{name}".replace(
        "../../../sys/", "../../"
    )
    files[f"{folder}/{kind}/{name}/operstate"] = "up\n"
    links[f"{folder}/{kind}/{name}/device"] = "../../"


def eight_on_switches(nics=True):
    """An HGX board with four switches: two GPUs and two network cards at each switch, two switches at each socket."""
    files, links = host(2, 48, 2, 1024, "INTEL(R) XEON(R) PLATINUM 8558")
    gpus = []
    for gpu in range(8):
        switch, node = gpu // 2, gpu // 4
        root = 0x10 + 0x20 * switch
        path = [f"pci0000:{root:02x}", f"0000:{root:02x}:01.0", f"0000:{root + 1:02x}:00.0"]
        address = f"0000:{root + 4 + gpu % 2:02x}:00.0"
        pci_device(files, links, address, [*path, f"0000:{root + 2:02x}:{gpu % 2:02x}.0"], node)
        gpus.append(
            {
                "uuid": f"GPU-{gpu:08x}-1111-2222-3333-444444444444",
                "pci": address,
                "node": node,
                "switch": switch,
            }
        )
        if nics:
            nic(
                files,
                links,
                f"mlx5_{gpu}",
                f"0000:{root + 8 + gpu % 2:02x}:00.0",
                [*path, f"0000:{root + 2:02x}:{2 + gpu % 2:02x}.0"],
                node,
            )
    return files, links, gpus


def h200x8():
    files, links, gpus = eight_on_switches()
    for gpu in gpus:
        number = int(gpu["uuid"][4:12], 16)
        idle = number == 5
        gpu["util"] = [41, 40, 43] if idle else [97, 98, 99]
        gpu["used_mib"] = [120_000 + 100 * number, 121_000 + 100 * number]
        gpu["temp"] = 52 + number
        gpu["power_w"] = [250.0] if idle else [640.0, 655.5, 690.25]
        gpu["gpm"] = {
            "2": [31.5] if idle else [88.25, 91.5],
            "3": 42.5,
            "5": 61.25,
            "10": 55.5,
            "11": 0,
            "12": 8.5,
            "13": 3.25,
            "20": 1200.5,
            "21": 900.25,
            "60": 30_500,
            "61": 30_250,
        }
        gpu["processes"] = [{"pid": 4000 + number, "mib": 119_000}]
        gpu["throttle"] = [4, 0, 0] if number == 3 else 1 if idle else 0
        gpu["throttle_ns"] = {"74": 250_000_000 if number == 3 else 0, "251": 0, "252": 0, "253": 0}
    return {
        "nvml": {
            "driver": "570.124.06",
            "nvml": "12.570.124.06",
            "cuda": 12080,
            "gpus": gpus,
            "every_gpu": {
                "name": "NVIDIA H200",
                "capability": [9, 0],
                "memory_mib": 143_771,
                "reserved_mib": 700,
                "mem_busy": 60,
                "mem_temp": 60,
                "power_limit_w": 700,
                "energy_j": 5_000_000,
                "sm_clock": 1980,
                "mem_clock": 3201,
                "pstate": 0,
                "ecc": [0, 0],
                "remap": [0, 0],
                "nvswitch": 18,
                "p2p": True,
                "nvlink_kib": [1024, 2048],
            },
        },
        "files": files,
        "links": links,
    }


def a100x4():
    """GPUs with four direct links each, without GPM and without energy in fields; one GPU has a memory row that waits for a reset."""
    files, links = host(2, 32, 2, 256, "AMD EPYC 7543 32-Core Processor")
    gpus = []
    for gpu in range(4):
        node = gpu // 2
        root = 0x01 + 0x40 * gpu
        address = f"0000:{root:02x}:00.0"
        pci_device(
            files, links, address, [f"pci0000:{root - 1:02x}", f"0000:{root - 1:02x}:01.1"], node
        )
        gpus.append(
            {
                "uuid": f"GPU-a100{gpu:04x}-5555-6666-7777-888888888888",
                "pci": address,
                "node": node,
                "peers": {str(other): 4 for other in range(4) if other != gpu},
                "util": 90 + gpu,
                "used_mib": 30_000,
                "temp": 60 + gpu,
                "power_w": 380.5,
                "remap": [1, 0] if gpu == 1 else [0, 0],
                "ecc": [12, 0] if gpu == 1 else [0, 0],
            }
        )
    nic(files, links, "mlx5_0", "0000:44:00.0", ["pci0000:40", "0000:40:03.1"], 0)
    return {
        "nvml": {
            "driver": "535.183.01",
            "nvml": "12.535.183.01",
            "cuda": 12020,
            "gpus": gpus,
            "lacks": ["nvmlGpmQueryDeviceSupport"],
            "every_gpu": {
                "name": "NVIDIA A100-SXM4-40GB",
                "capability": [8, 0],
                "memory_mib": 40_960,
                "reserved_mib": 400,
                "mem_busy": 45,
                "mem_temp": 70,
                "power_limit_w": 400,
                "energy_j": 100,
                "sm_clock": 1410,
                "mem_clock": 1215,
                "pstate": 0,
                "throttle": 0,
                "p2p": True,
                "processes": [{"pid": 77, "mib": 29_000}],
            },
        },
        "files": files,
        "links": links,
    }


def mig():
    """Two A100; one is divided into three instances. NVML gives no utilisation for that GPU or for its instances."""
    files, links = host(1, 16, 2, 128, "AMD EPYC 7313 16-Core Processor")
    for _gpu, root in enumerate((0x01, 0x41)):
        pci_device(
            files,
            links,
            f"0000:{root:02x}:00.0",
            [f"pci0000:{root - 1:02x}", f"0000:{root - 1:02x}:01.1"],
            0,
        )
    instances = [
        {
            "uuid": f"MIG-{slot}0000000-aaaa-bbbb-cccc-dddddddddddd",
            "name": f"NVIDIA A100 80GB PCIe MIG {size}",
            "gi": gi,
            "ci": 0,
            "memory_mib": mib,
            "used_mib": used,
            "reserved_mib": 0,
            "processes": [{"pid": 90 + slot, "mib": used}],
        }
        for slot, (size, gi, mib, used) in enumerate(
            (
                ("3g.40gb", 1, 40_192, 20_000),
                ("2g.20gb", 5, 19_968, 150),
                ("1g.10gb", 13, 9_728, 9_500),
            )
        )
    ]
    cut = {
        "uuid": "GPU-0000aaaa-0000-0000-0000-000000000000",
        "pci": "0000:01:00.0",
        "used_mib": 29_650,
        "mig": [instances[0], instances[1], None, instances[2]],
    }
    whole = {
        "uuid": "GPU-0000bbbb-0000-0000-0000-000000000000",
        "pci": "0000:41:00.0",
        "used_mib": 500,
        "util": 12,
        "mem_busy": 3,
        "processes": [],
    }
    return {
        "nvml": {
            "driver": "550.90.07",
            "nvml": "12.550.90.07",
            "cuda": 12040,
            "gpus": [cut, whole],
            "every_gpu": {
                "name": "NVIDIA A100 80GB PCIe",
                "capability": [8, 0],
                "memory_mib": 81_920,
                "reserved_mib": 600,
                "temp": 45,
                "power_w": 120.25,
                "power_limit_w": 300,
                "energy_j": 10,
                "sm_clock": 1410,
                "mem_clock": 1512,
                "pstate": 0,
                "throttle": 0,
                "node": 0,
                "ecc": [0, 0],
                "remap": [0, 0],
            },
        },
        "files": files,
        "links": links,
    }


def lost():
    """Four H100. The third one falls off the bus at the fourth sample, after Xid 79."""
    files, links, gpus = eight_on_switches(nics=False)
    gpus = gpus[:4]
    gpus[2].update({"lost_at": 4, "xids": {"3": 79}})
    return {
        "nvml": {
            "driver": "550.90.07",
            "nvml": "12.550.90.07",
            "cuda": 12040,
            "gpus": gpus,
            "every_gpu": {
                "name": "NVIDIA H100 80GB HBM3",
                "capability": [9, 0],
                "memory_mib": 81_559,
                "used_mib": 60_000,
                "reserved_mib": 550,
                "util": 95,
                "mem_busy": 40,
                "temp": 55,
                "power_w": 500,
                "power_limit_w": 700,
                "energy_j": 0,
                "nvswitch": 18,
                "processes": [],
                "p2p": True,
            },
        },
        "files": files,
        "links": links,
    }


def breaking():
    """Two H100. A memory row of the second one is remapped 0.2 s after the driver is opened; 0.2 s later this GPU falls off the bus."""
    files, links = host(1, 16, 2, 128, "AMD EPYC 9124 16-Core Processor")
    gpus = [
        {"uuid": f"GPU-5555000{slot}-0000-0000-0000-000000000000", "pci": f"0000:{slot}1:00.0"}
        for slot in range(2)
    ]
    gpus[1].update({"xids_at_ms": {"200": 63, "400": 79}})
    return {
        "nvml": {
            "driver": "570.124.06",
            "nvml": "12.570.124.06",
            "cuda": 12080,
            "gpus": gpus,
            "every_gpu": {
                "name": "NVIDIA H100 PCIe",
                "capability": [9, 0],
                "memory_mib": 81_559,
                "used_mib": 60_000,
                "util": 95,
                "temp": 55,
                "power_w": 300,
                "power_limit_w": 350,
                "energy_j": 0,
            },
        },
        "files": files,
        "links": links,
    }


def wsl():
    """A GeForce under WSL2: the driver of Windows gives few figures, and its power is a sentinel value."""
    files, links = host(1, 8, 2, 32, "13th Gen Intel(R) Core(TM) i7-13700K")
    return {
        "nvml": {
            "driver": "566.36",
            "nvml": "12.565.77.01",
            "cuda": 12070,
            "lacks": ["nvmlGpmQueryDeviceSupport", "nvmlEventSetCreate"],
            "gpus": [
                {
                    "uuid": "GPU-44440000-0000-0000-0000-000000000000",
                    "pci": "0000:01:00.0",
                    "name": "NVIDIA GeForce RTX 4090",
                    "capability": [8, 9],
                    "memory_mib": 24_564,
                    "used_mib": 2_100,
                    "reserved_mib": 300,
                    "util": 30,
                    "temp": 41,
                    "power_w": 4_294_967.295,
                    "pstate": 32,
                    "sm_clock": 2520,
                }
            ],
        },
        "files": files,
        "links": links,
    }


def unified():
    """A GB10, which uses the memory of the host: NVML gives no memory of its own."""
    files, links = host(1, 20, 1, 119, "Cortex-X925")
    return {
        "nvml": {
            "driver": "580.95.05",
            "nvml": "13.580.95.05",
            "cuda": 13000,
            "gpus": [
                {
                    "uuid": "GPU-10100000-0000-0000-0000-000000000000",
                    "pci": "000f:01:00.0",
                    "name": "NVIDIA GB10",
                    "capability": [12, 1],
                    "util": 50,
                    "temp": 48,
                    "power_w": 35.5,
                    "processes": [{"pid": 5, "mib": 9000}],
                }
            ],
        },
        "files": files,
        "links": links,
    }


def mismatch():
    files, links = host(1, 8, 2, 64, "Intel(R) Xeon(R) Silver 4309Y CPU @ 2.80GHz")
    return {"nvml": {"init": 18, "gpus": []}, "files": files, "links": links}


def cpus():
    files, links = host(
        2, 4, 1, 16, "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", free_share=0.5, swap_gib=2
    )
    return {"nvml": {"init": 9, "gpus": []}, "files": files, "links": links}


def mi300x8():
    """AMD: KFD's nodes 0 and 1 are the sockets."""
    files, links = host(2, 96, 1, 1024, "AMD EPYC 9654 96-Core Processor")
    nodes = "sys/class/kfd/kfd/topology/nodes"
    for socket in range(2):
        files[f"{nodes}/{socket}/gpu_id"] = "0\n"
        files[f"{nodes}/{socket}/properties"] = "cpu_cores_count 96\nsimd_count 0\n"
    for gpu in range(8):
        bus = 0x05 + 0x20 * gpu
        address = f"0000:{bus:02x}:00.0"
        folder = pci_device(
            files, links, address, [f"pci0000:{bus - 1:02x}", f"0000:{bus - 1:02x}:01.1"], gpu // 4
        )
        files[f"{nodes}/{gpu + 2}/gpu_id"] = f"{28_000 + gpu}\n"
        files[f"{nodes}/{gpu + 2}/properties"] = (
            f"cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\ngfx_target_version 90402\n"
            f"domain 0\nlocation_id {bus << 8}\nunique_id {0x8D00_0000_0000_0000 + gpu}\n"
        )
        files[f"{nodes}/{gpu + 2}/mem_banks/0/properties"] = (
            f"heap_type 1\nsize_in_bytes {196_592 << 20}\n"
        )
        files[f"{folder}/product_name"] = "AMD Instinct MI300X\n"
        files[f"{folder}/gpu_busy_percent"] = f"{90 + gpu}\n"
        files[f"{folder}/mem_busy_percent"] = "33\n"
        files[f"{folder}/mem_info_vram_total"] = f"{196_592 << 20}\n"
        files[f"{folder}/mem_info_vram_used"] = f"{100_000 + gpu << 20}\n"
        files[f"{folder}/hwmon/hwmon{gpu}/power1_input"] = "612000000\n"
        files[f"{folder}/hwmon/hwmon{gpu}/power1_cap"] = "750000000\n"
        files[f"{folder}/hwmon/hwmon{gpu}/temp2_input"] = "61000\n"
        files[f"{folder}/hwmon/hwmon{gpu}/temp3_input"] = "48000\n"
        files[f"{folder}/hwmon/hwmon{gpu}/freq1_input"] = "2100000000\n"
    return {"nvml": {"init": 9, "gpus": []}, "files": files, "links": links}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for machine in (h200x8, a100x4, mig, lost, breaking, wsl, unified, mismatch, cpus, mi300x8):
        (folder / f"{machine.__name__}.json").write_text(
            json.dumps(machine(), indent=0, separators=(",", ":")) + "\n"
        )


if __name__ == "__main__":
    main()
