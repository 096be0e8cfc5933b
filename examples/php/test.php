<?php

// Tests the example with the packages of Debian, on the server that PGHOST, PGPORT, PGUSER and
// PGDATABASE name: php test.php

require 'Doctrine/ORM/autoload.php';
require __DIR__ . '/Order.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Tools\SchemaTool;

function same(mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new Exception(json_encode($found) . ' is not ' . json_encode($expected));
    }
}

function open(): EntityManager
{
    $configuration = new Configuration();
    $configuration->setMetadataDriverImpl(new AttributeDriver([__DIR__]));
    $configuration->setProxyDir(sys_get_temp_dir());
    $configuration->setProxyNamespace('Proxies');
    return new EntityManager(DriverManager::getConnection([
        'driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
        'user' => getenv('PGUSER'), 'dbname' => getenv('PGDATABASE'),
    ]), $configuration);
}

$em = open();
$classes = [$em->getClassMetadata(Order::class)];
$tool = new SchemaTool($em);
$create = 'CREATE TABLE orders (id BIGINT DEFAULT snowflake_next() NOT NULL, item TEXT NOT NULL, PRIMARY KEY(id))';

// Without the filter, it would drop what the extension has.
same(in_array('DROP SEQUENCE _snowflake.epoch CASCADE', $tool->getUpdateSchemaSql($classes)), true);

leave_out_the_record($em->getConnection()->getConfiguration());
// The schema `test` is there where the tests of all examples are run.
$update = fn () => array_values(array_filter($tool->getUpdateSchemaSql($classes), fn ($sql) => !str_contains($sql, ' test.')));
same($update(), [$create]);
$tool->updateSchema($classes, true);
same($update(), []);

$orders = [];
for ($n = 0; $n < 100; $n++) {
    $orders[] = $order = new Order();
    $order->item = "item $n";
    $em->persist($order);
}
$em->flush();
$ids = array_map(fn ($order) => $order->id, $orders);
same(count(array_unique($ids)), 100);
$em->clear();
same($em->find(Order::class, $ids[99])->item, 'item 99');
same(json_encode(['id' => $ids[99]]), '{"id":"' . $ids[99] . '"}');
// Whoever else inserts gets keys of the same kind.
$other = $em->getConnection()->fetchOne("INSERT INTO orders (item) VALUES ('lamp') RETURNING id");
same($other > $ids[99], true);
same((string) $em->getConnection()->fetchOne('SELECT count(*) FROM orders'), '101');
echo "1 test passed\n";
