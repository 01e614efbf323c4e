#!/usr/bin/env perl
# Takes the place of other libraries' tools, which are not installed everywhere, where only the
# looks of a page matter: by the name under which it is called it is ucx_info, ucx_perftest,
# fi_info, fi_pingpong, mpicc or mpirun. It measures nothing; its figures are made up.
use strict;
use warnings;
use IO::Socket::INET;

my ($tool) = $0 =~ m{([^/]+)$};

# Nanoseconds of one way: a start, and so many bytes in each.
sub time_of {
    my ($size, $start, $bytes) = @_;
    return $start + $size / $bytes;
}

# The side that is called waits for the other one.
sub serve {
    my ($port) = @_;
    my $listener = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1, ReuseAddr => 1
    ) or die "$tool: port $port: $@\n";
    $listener->accept;
    exit 0;
}

sub call {
    my ($port) = @_;
    IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
        or die "$tool: port $port: $@\n";
}

sub value_after {
    my ($name) = @_;
    for my $at (0 .. $#ARGV - 1) {
        return $ARGV[$at + 1] if $ARGV[$at] eq $name;
    }
    return undef;
}

if ($tool eq 'ucx_info') {
    print "# Library version: made up\n";
} elsif ($tool eq 'fi_info') {
    print "libfabric: made up\n";
} elsif ($tool eq 'mpicc') {
    exit 0;
} elsif ($tool eq 'ucx_perftest') {
    my ($port, $size) = (value_after('-p'), value_after('-s'));
    serve($port) unless defined $size;
    call($port);
    my $time = time_of($size, 480, 12);
    my $speed = 1e9 * $size / $time / 2**20;
    print "iterations,50.0_percentile_lat,overall_bw\n";
    printf "100,%.4f,%.2f\n", $time / 1e3, $speed;
} elsif ($tool eq 'fi_pingpong') {
    my ($server, $client) = (value_after('-B'), value_after('-P'));
    serve($server) if defined $server;
    call($client);
    my $size = value_after('-S');
    print "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec\n";
    printf "%d 100 =100 1k 0.00s %.4f 1.00 1.00\n", $size, 1e3 * $size / time_of($size, 260, 13);
} elsif ($tool eq 'mpirun') {
    if ($ARGV[0] eq '--version') {
        print "MPI, made up\n";
        exit 0;
    }
    # The sizes stand behind the program and its first word.
    for my $size (grep { /^\d+$/ } @ARGV[4 .. $#ARGV]) {
        my $time = time_of($size, 250, 11);
        printf "one-way-%d %.4f us\nstream-%d %.4f GB/s\n", $size, $time / 1e3, $size,
            $size / $time;
    }
}
