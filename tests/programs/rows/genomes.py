"""Genomics: indexes that are used at random, on genomes that are made here."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import DEBIAN_PYTHON, Needs, Row, main, python_data  # noqa: E402

COMPLEMENT = bytes.maketrans(b"ACGT", b"TGCA")


def chromosomes(source, bases: int, count: int = 4) -> list:
    """With repeats, as genomes have them."""
    repeats = [bytes(source.choices(b"ACGT", k=3000)) for _ in range(40)]
    made = []
    for _ in range(count):
        sequence = bytearray(source.choices(b"ACGT", k=bases // count))
        for _ in range(bases // 100_000 // count):
            at = source.randrange(len(sequence) - 3000)
            sequence[at:at + 3000] = source.choice(repeats)
        made.append(bytes(sequence))
    return made


def write_fasta(path: str, sequences: list, name: str = "chr{}") -> None:
    with open(path, "wb") as file:
        for i, sequence in enumerate(sequences, 1):
            file.write(f">{name.format(i)}\n".encode())
            file.writelines(sequence[at:at + 80] + b"\n" for at in range(0, len(sequence), 80))


def write_reads(path: str, source, sequences: list, count: int, bases: int, errors: float) -> None:
    with open(path, "wb") as file:
        for i in range(count):
            sequence = source.choice(sequences)
            at = source.randrange(len(sequence) - bases)
            read = bytearray(sequence[at:at + bases])
            for _ in range(int(bases * errors)):
                read[source.randrange(bases)] = source.choice(b"ACGT")
            read = bytes(read)
            file.write(b"@r%d\n%s\n+\n%s\n" % (i, read.translate(COMPLEMENT)[::-1] if i & 1 else read, b"I" * bases))


def small_genome():
    """of 16,000,000 bases, with long reads and short ones"""
    import random
    source = random.Random(7)
    sequences = chromosomes(source, 16_000_000)
    write_fasta("genome.fa", sequences)
    write_reads("long.fq", source, sequences, 300, 9000, .05)


def genome():
    """of 60,000,000 bases with an index of bwa's, and short reads"""
    import random
    import subprocess
    source = random.Random(8)
    sequences = chromosomes(source, 60_000_000)
    write_fasta("genome.fa", sequences)
    write_reads("short.fq", source, sequences, 4000, 150, .01)
    subprocess.run(["bwa", "index", "genome.fa"], check=True)


def alignments():
    """600,000 records of SAM, in no order"""
    import random
    source = random.Random(9)
    with open("alignments.sam", "w") as file:
        file.write("@HD\tVN:1.6\tSO:unsorted\n" + "".join(f"@SQ\tSN:chr{i}\tLN:200000000\n" for i in range(1, 5)))
        for i in range(600_000):
            bases = "".join(source.choices("ACGT", k=150))
            file.write(f"r{i}\t0\tchr{source.randrange(4) + 1}\t{source.randrange(199_000_000) + 1}\t60\t150M\t*\t0\t0\t{bases}\t"
                       f"{'I' * 150}\n")


def kraken_database():
    """four genomes of 15,000,000 bases, a taxonomy, their hash table and reads"""
    import os
    import random
    import subprocess
    source = random.Random(10)
    sequences = chromosomes(source, 60_000_000)
    os.makedirs("db/taxonomy")
    with open("db/taxonomy/nodes.dmp", "w") as file:
        file.write("1\t|\t1\t|\tno rank\t|\n" + "".join(f"{9 + i}\t|\t1\t|\tspecies\t|\n" for i in range(1, 5)))
    with open("db/taxonomy/names.dmp", "w") as file:
        file.write("1\t|\troot\t|\t\t|\tscientific name\t|\n")
        file.writelines(f"{9 + i}\t|\tspecies {i}\t|\t\t|\tscientific name\t|\n" for i in range(1, 5))
    for i, sequence in enumerate(sequences, 1):
        write_fasta(f"s{i}.fa", [sequence], f"s{i}|kraken:taxid|{9 + i}")
        subprocess.run(["kraken2-build", "--add-to-library", f"s{i}.fa", "--db", "db", "--no-masking"], check=True)
    write_reads("reads.fq", source, sequences, 20_000, 150, .01)
    subprocess.run(["kraken2-build", "--build", "--db", "db", "--threads", "1"], check=True)


def of_python(function):
    return python_data(function, python=DEBIAN_PYTHON)


ROWS = [
    Row(name="minimap2", about="an index of 16,000,000 bases, and 300 long reads that are mapped to it",
        command=("minimap2", "-a", "-x", "map-ont", "-t", "2", "{data}/genome.fa", "{data}/long.fq"),
        needs=Needs(debian=("minimap2",)), version=("minimap2", "--version"), data=of_python(small_genome), cap_mib=32, data_mib=128,
        limit_s=400),
    Row(name="bwa_mem", about="4,000 short reads, mapped by an index of 60,000,000 bases",
        command=("bwa", "mem", "-t", "2", "-K", "10000000", "{data}/genome.fa", "{data}/short.fq"),
        needs=Needs(debian=("bwa",)), version=("sh", "-c", "bwa 2>&1 | grep Version"), data=of_python(genome), cap_mib=24, data_mib=100,
        limit_s=400),
    Row(name="samtools_sort", about="sorts 600,000 records in memory, two threads",
        command=("samtools", "sort", "--no-PG", "-l", "1", "-m", "400M", "-@", "1", "-o", "sorted.bam", "{data}/alignments.sam"),
        compares=("sorted.bam",), needs=Needs(debian=("samtools",)), version=("samtools", "--version"), data=of_python(alignments),
        cap_mib=48, data_mib=192),
    Row(name="kraken2", about="20,000 reads, classified by a hash table of 105 MiB",
        command=("kraken2", "--db", "{data}/db", "--threads", "2", "--report", "report", "{data}/reads.fq"), compares=("report",),
        needs=Needs(debian=("kraken2",)), version=("kraken2", "--version"), data=of_python(kraken_database), cap_mib=26, data_mib=106,
        limit_s=300),
]

if __name__ == "__main__":
    main(globals())
