"""Learning and nearest neighbours: scikit-learn, faiss, hnswlib, torch."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import main, python_row  # noqa: E402

MIB = 1 << 20


def told(*arrays) -> None:
    import hashlib

    import numpy
    for array in map(numpy.ascontiguousarray, arrays):
        print(array.shape, array.dtype, hashlib.sha256(array.tobytes()).hexdigest())


def vectors(count: int, width: int, clusters: int):
    """Around centres, those of a centre one after the other, as they often come."""
    import numpy
    generator = numpy.random.default_rng(5)
    made = generator.standard_normal((count, width), dtype=numpy.float32)
    made += numpy.repeat(10 * generator.standard_normal((clusters, width), dtype=numpy.float32), count // clusters, axis=0)
    return made


def scikit_learn_fit():
    """1 M rows of 32 numbers (256 MiB): scaling, PCA, trees by gradient boosting"""
    import numpy
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.preprocessing import StandardScaler
    data = vectors(MIB, 32, 64).astype(numpy.float64)
    scaled = StandardScaler().fit_transform(data)
    parts = PCA(n_components=4, svd_solver="covariance_eigh").fit(scaled)
    # Sums are made by threads, in an order of theirs: what is printed is rounded.
    print(numpy.round(parts.explained_variance_, 6).tolist())
    trees = HistGradientBoostingRegressor(max_iter=3, random_state=1).fit(scaled, data[:, 0] + data[:, 5])
    print(numpy.round(trees.predict(scaled[::50000]), 6).tolist())


def faiss_search():
    """512 k vectors of 128 numbers (256 MiB), searched exactly and by inverted lists"""
    import faiss
    data = vectors(512 * 1024, 128, 256)
    queries = data[::16384].copy() + 1
    exact = faiss.IndexFlatL2(128)
    exact.add(data)
    told(exact.search(queries, 10)[1])
    lists = faiss.IndexIVFFlat(faiss.IndexFlatL2(128), 128, 256)
    lists.train(data[::16].copy())
    lists.add(data)
    lists.nprobe = 8
    told(lists.search(queries, 10)[1])


def hnswlib_build_search():
    """a graph of 128 k vectors of 512 numbers (280 MiB), built by one thread, searched"""
    import hnswlib
    count, width = 128 * 1024, 512
    index = hnswlib.Index(space="l2", dim=width)
    index.init_index(max_elements=count, ef_construction=30, M=8, random_seed=3)
    index.set_num_threads(1)
    for part in range(16):
        generator_part = vectors(count // 16, width, 4) + part * 3
        index.add_items(generator_part)
        if part % 4 == 0:
            told(*index.knn_query(generator_part[::512], k=5))
    index.save_index("graph")


def torch_training():
    """a model of 32 M weights with Adam (512 MiB of weights, gradients and moments), 4 steps"""
    import torch
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        batch = torch.randn(64, 4096)
        loss = (model(batch) - batch).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(f"{loss.item():.6f}")
    told(*(weights.detach().numpy().round(5) for weights in model.parameters()))


def torch_data_loader():
    """a data set of 512 MiB in batches by two worker processes (fork, shared memory), in another order each epoch"""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(1)
    data = torch.arange(64 * MIB).reshape(-1, 16384)
    loader = DataLoader(TensorDataset(data), batch_size=16, shuffle=True, num_workers=2)
    for _ in range(2):
        total, weighted = 0, 0
        for number, (batch,) in enumerate(loader):
            total += int(batch.sum())
            weighted += number * int(batch[0, 0])
        print(total, weighted)


ROWS = [
    python_row(scikit_learn_fit, package="scikit-learn", pypi=("scikit-learn",), cap_mib=128, data_mib=512),
    python_row(faiss_search, package="faiss-cpu", pypi=("faiss-cpu",), cap_mib=128, data_mib=512),
    python_row(hnswlib_build_search, package="hnswlib", pypi=("hnswlib",), cap_mib=64, data_mib=256, compares=("graph",)),
    # PyPI's torch is CUDA's, gigabytes; Debian's is for processors.
    python_row(torch_training, package="torch", debian=("python3-torch", "python3-numpy"), cap_mib=128, data_mib=512),
    python_row(torch_data_loader, package="torch", debian=("python3-torch", "python3-numpy"), cap_mib=128, data_mib=512),
]

if __name__ == "__main__":
    main(globals())
